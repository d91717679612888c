import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import {
  type Database,
  query,
  type Transaction,
  transaction,
} from "@kenri/shared/postgres/postgres.ts";
import type { NewLease, Written } from "@kenri/shared/queue/handover.ts";
import { lockRequests } from "./change_locks.ts";
import {
  type Answer,
  type ChangeRequest,
  type CurrentState,
  decide,
  replayOf,
  type StoredAnswer,
} from "./decide_change.ts";
import { type Change, storedKeyOf } from "./entitlement.ts";
import { sha256 } from "@kenri/shared/process/sha256.ts";
import { appendChanges, storeAnswers, storeEvents } from "./store_changes.ts";

export interface CommitOptions {
  idempotencyTtlMs: number;
  maxPerUser?: number | undefined; // counts entitlements of any status
}

// Commits changes that arrived at the same time in one transaction, each as if it were alone: its
// entitlement, event, audit row and stored answer are committed together or not at all. No two of
// the changes share an idempotency key or an entitlement, because the batch keeps those apart
// (keysOf). With a lease, events are written as leased to the relay of this process and handed over
// to it.
export async function commitChanges(
  database: Database,
  changes: Change[],
  options: CommitOptions,
  lease?: NewLease,
): Promise<Written<OutboxRow, Answer[]>> {
  const requests = changes.map(toRequest);
  const replays = expectsRepeats ? await findReplays(database, requests) : [];
  const fresh = requests.filter((_, i) => !replays[i]);
  const committed = fresh.length === 0
    ? { result: [], leased: [], othersWait: false }
    : await commitRequests(database, fresh, options, lease);
  const answers = committed.result.values();
  const result = requests.map((_, i) => replays[i] ?? answers.next().value as Answer);
  expectsRepeats = result.some(({ outcome }) => outcome === "replayed");
  return { ...committed, result };
}

// Clients repeat their requests in waves, after they could not reach the service or gave up
// waiting. Only during such a wave is it worth looking for stored answers before taking locks.
let expectsRepeats = false;

function toRequest(change: Change): ChangeRequest {
  const { action, userId, stockKeepingUnit, reason, purchaseId } = change;
  const identity = JSON.stringify([action, userId, stockKeepingUnit, reason, purchaseId]);
  return { ...change, storedKey: storedKeyOf(change), hash: sha256(identity) };
}

// A stored answer does not change while it is valid, so it can be read without a lock. An answer
// that is not found here may be about to be committed: that is decided under the locks.
async function findReplays(
  database: Database,
  requests: ChangeRequest[],
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
  requests: ChangeRequest[],
  { maxPerUser, idempotencyTtlMs }: CommitOptions,
  lease: NewLease | undefined,
): Promise<Written<OutboxRow, Answer[]>> {
  return await transaction(database, async (tx) => {
    const locked = lockRequests(tx, requests, maxPerUser !== undefined);
    const [states, hasCapacity] = await Promise.all([
      findCurrentStates(tx, requests),
      maxPerUser === undefined ? undefined : findCapacity(tx, requests, maxPerUser),
      locked,
    ]);
    const decisions = requests.map((request, i) =>
      decide(request, states[i] as CurrentState, hasCapacity?.[i] ?? true)
    );
    const commits = decisions.flatMap(({ commit }) => commit ?? []);
    const refusals = decisions.flatMap(({ refusal }) => refusal ?? []);
    const [leased = []] = commits.length + refusals.length === 0 ? [] : await Promise.all([
      storeEvents(tx, commits, lease),
      appendChanges(tx, commits),
      storeAnswers(tx, [...commits, ...refusals], idempotencyTtlMs),
    ]);
    return {
      result: decisions.map(({ answer }) => answer),
      leased,
      othersWait: leased.length < commits.length,
    };
  });
}

function findCurrentStates(tx: Transaction, requests: ChangeRequest[]): Promise<CurrentState[]> {
  const wanted = requests.map(({ storedKey, userId, stockKeepingUnit }) => ({
    idem_key: storedKey,
    user_id: userId,
    stock_keeping_unit: stockKeepingUnit,
  }));
  return query<CurrentState>(
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

// Whether the user of each request may have one more entitlement.
async function findCapacity(
  tx: Transaction,
  requests: ChangeRequest[],
  maxPerUser: number,
): Promise<boolean[]> {
  const rows = await query<{ has_capacity: boolean }>(
    tx,
    `select (
       select count(*) from (
         select from entitlements
         where entitlements.user_id = wanted.user_id
         limit $2) as counted) < $2 as has_capacity
     from unnest($1::text[]) with ordinality as wanted (user_id, position)
     order by wanted.position`,
    [requests.map(({ userId }) => userId), maxPerUser],
  );
  return rows.map(({ has_capacity }) => has_capacity);
}
