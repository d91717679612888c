import { createHash } from "node:crypto";
import type { NewLease, Written } from "@kenri/shared/queue/handover.ts";
import {
  type Database,
  query,
  type Transaction,
  transaction,
} from "@kenri/shared/postgres/postgres.ts";
import {
  type Answer,
  decide,
  replayOf,
  type Request,
  type Situation,
  type StoredAnswer,
} from "./decide_change.ts";
import { type Change, storedKeyOf } from "./entitlement.ts";
import type { OutboxRow } from "./outbox.ts";
import { announceChanges, appendChanges, storeAnswers } from "./store_changes.ts";

export interface CommitOptions {
  idempotencyTtlMs: number;
  maxPerUser?: number | undefined; // entitlements, whatever their state
}

// Commits changes that came in at the same time in one transaction, each as if it were alone: its
// row, event, audit entry and stored answer together or not at all. No two of them share an
// idempotency key or an entitlement; the batch before this sees to it (see keysOf). With a lease,
// their events are written as leased to the relay of this process, to be handed over to it.
export async function commitChanges(
  database: Database,
  changes: Change[],
  options: CommitOptions,
  lease?: NewLease,
): Promise<Written<OutboxRow, Answer[]>> {
  const requests = changes.map(toRequest);
  const known = repeatsCome ? await findReplays(database, requests) : [];
  const fresh = requests.filter((_, i) => !known[i]);
  const committed = fresh.length === 0
    ? { result: [], leased: [], othersWait: false }
    : await commitRequests(database, fresh, options, lease);
  const decided = committed.result.values();
  const result = requests.map((_, i) => known[i] ?? decided.next().value as Answer);
  repeatsCome = result.some(({ outcome }) => outcome === "replayed");
  return { ...committed, result };
}

// Requests are repeated in waves, when clients could not reach us or gave up waiting. Only then does
// it pay to look for answers before the locks.
let repeatsCome = false;

// Once stored and while it is valid an answer does not change, so it is found without a lock. What
// is not found here may be on its way: that is decided under the locks.
async function findReplays(
  database: Database,
  requests: Request[],
): Promise<(Answer | undefined)[]> {
  const stored = await query<StoredAnswer & { idem_key: string }>(
    database,
    `select idem_key, request_hash as stored_hash, response_code, response_body
     from idempotency_keys
     where idem_key = any($1) and expires_at > now()`,
    [requests.map(({ storedKey }) => storedKey)],
  );
  const byKey = new Map(stored.map((row) => [row.idem_key, row]));
  return requests.map((request) => {
    const found = byKey.get(request.storedKey);
    return found && replayOf(request, found);
  });
}

async function commitRequests(
  database: Database,
  requests: Request[],
  options: CommitOptions,
  lease: NewLease | undefined,
): Promise<Written<OutboxRow, Answer[]>> {
  return await transaction(database, async (tx) => {
    const { maxPerUser } = options;
    const locked = lockRequests(tx, requests, maxPerUser !== undefined);
    const [situations, hasCapacity] = await Promise.all([
      findSituations(tx, requests),
      maxPerUser === undefined ? undefined : findCapacity(tx, requests, maxPerUser),
      locked,
    ]);
    const decisions = requests.map((request, i) =>
      decide(request, situations[i] as Situation, hasCapacity?.[i] ?? true)
    );
    const commits = decisions.flatMap(({ commit }) => commit ?? []);
    const refusals = decisions.flatMap(({ refusal }) => refusal ?? []);
    const [leased = []] = commits.length + refusals.length === 0 ? [] : await Promise.all([
      announceChanges(tx, commits, lease),
      appendChanges(tx, commits),
      storeAnswers(tx, [...commits, ...refusals], options.idempotencyTtlMs),
    ]);
    return {
      result: decisions.map(({ answer }) => answer),
      leased,
      othersWait: leased.length < commits.length,
    };
  });
}

// What a change must have to itself while it is being committed. Where the entitlements of a user
// are counted, none of them may be added meanwhile.
export function keysOf(change: Change, counted: boolean): string[] {
  const keys = [`key ${storedKeyOf(change)}`, entitlementLock(change)];
  return counted ? [...keys, userLock(change)] : keys;
}

type Named = Pick<Change, "userId" | "stockKeepingUnit">;

function entitlementLock({ userId, stockKeepingUnit }: Named): string {
  return JSON.stringify([userId, stockKeepingUnit]);
}

function userLock({ userId }: Change): string {
  return JSON.stringify([userId]);
}

function toRequest(change: Change): Request {
  const { action, userId, stockKeepingUnit, reason, purchaseId } = change;
  const identity = JSON.stringify([action, userId, stockKeepingUnit, reason, purchaseId]);
  return { ...change, storedKey: storedKeyOf(change), hash: sha256(identity) };
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

export function lockNumber(text: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${sha256(text).slice(0, 16)}`));
}

// One for the idempotency key and one for the entitlement of each request. An entitlement needs a
// lock of its own because its row may not exist yet; where they are counted, their user has one in
// addition, since a replica of other settings may not know of it.
function lockRequests(tx: Transaction, requests: Request[], counted: boolean): Promise<void> {
  return lock(
    tx,
    requests.flatMap((request) => [
      request.storedKey,
      entitlementLock(request),
      ...(counted ? [userLock(request)] : []),
    ]),
  );
}

// For whoever changes entitlements otherwise than by a request.
export function lockEntitlements(tx: Transaction, entitlements: Named[]): Promise<void> {
  return lock(tx, entitlements.map(entitlementLock));
}

// All numbers are taken in ascending order by everyone, so that replicas wait for each other in a
// line, not in a ring.
async function lock(tx: Transaction, names: string[]): Promise<void> {
  const numbers = names.map(lockNumber);
  numbers.sort((a, b) => a < b ? -1 : a > b ? 1 : 0);
  await query(
    tx,
    `select count(pg_advisory_xact_lock(number)) from unnest($1::bigint[]) as number`,
    [
      `{${numbers.join()}}`,
    ],
  );
}

function findSituations(tx: Transaction, requests: Request[]): Promise<Situation[]> {
  const wanted = requests.map(({ storedKey, userId, stockKeepingUnit }) => ({
    idem_key: storedKey,
    user_id: userId,
    stock_keeping_unit: stockKeepingUnit,
  }));
  return query<Situation>(
    tx,
    `select
       stored.request_hash as stored_hash, stored.response_code, stored.response_body,
       entitlement.status, entitlement.version,
       to_char(
         greatest(clock_timestamp(), entitlement.updated_at + interval '1 microsecond')
           at time zone 'UTC',
         'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
     from rows from (
       json_to_recordset($1) as (idem_key text, user_id text, stock_keeping_unit text)
     ) with ordinality as wanted (idem_key, user_id, stock_keeping_unit, position)
     left join idempotency_keys stored
       on stored.idem_key = wanted.idem_key and stored.expires_at > now()
     left join entitlements entitlement
       on entitlement.user_id = wanted.user_id
       and entitlement.stock_keeping_unit = wanted.stock_keeping_unit
     order by wanted.position`,
    [JSON.stringify(wanted)],
  );
}

// Whether the user of each request may have one more.
async function findCapacity(
  tx: Transaction,
  requests: Request[],
  maxPerUser: number,
): Promise<boolean[]> {
  const rows = await query<{ is_room: boolean }>(
    tx,
    `select (
       select count(*) from (
         select from entitlements
         where entitlements.user_id = wanted.user_id
         limit $2) as counted) < $2 as is_room
     from unnest($1::text[]) with ordinality as wanted (user_id, position)
     order by wanted.position`,
    [requests.map(({ userId }) => userId), maxPerUser],
  );
  return rows.map(({ is_room }) => is_room);
}
