import { createHash } from "node:crypto";
import { ApiError } from "@kenri/shared/errors";
import { type Database, query, type Transaction, transaction } from "@kenri/shared/postgres";
import { aggregateKeyOf, type Change, changed, eventTypeOf, statusAfter } from "./entitlement.ts";
import { uuidv7 } from "@kenri/shared/uuid";

export interface Answer {
  status: number;
  body: string;
  replayed: boolean;
}

export interface CommitOptions {
  idempotencyTtlMs: number;
}

// Commits changes that came in at the same time in one transaction, each as if it were alone: its
// row, event, audit entry and stored answer together or not at all. No two of them share an
// idempotency key or an entitlement; the batch before this sees to it (see keysOf).
export async function commitChanges(
  database: Database,
  changes: Change[],
  options: CommitOptions,
): Promise<Answer[]> {
  const requests = changes.map(toRequest);
  return await transaction(database, async (tx) => {
    const locked = lockRequests(tx, requests);
    const [situations] = await Promise.all([findSituations(tx, requests), locked]);
    const decisions = requests.map((request, i) => decide(request, situations[i] as Situation));
    const commits = decisions.flatMap(({ commit }) => commit ?? []);
    const refusals = decisions.flatMap(({ refusal }) => refusal ?? []);
    if (commits.length + refusals.length > 0) {
      await Promise.all([
        storeChanges(tx, commits),
        storeAnswers(tx, [...commits, ...refusals], options.idempotencyTtlMs),
      ]);
    }
    return decisions.map(({ answer }) => answer);
  });
}

// What a change must have to itself while it is being committed.
export function keysOf(change: Change): string[] {
  return [`key ${change.idempotencyKey}`, entitlementLock(change)];
}

function entitlementLock({ userId, stockKeepingUnit }: Change): string {
  return JSON.stringify([userId, stockKeepingUnit]);
}

interface Request extends Change {
  hash: string;
}

function toRequest(change: Change): Request {
  const { action, userId, stockKeepingUnit, reason, purchaseId } = change;
  const identity = JSON.stringify([action, userId, stockKeepingUnit, reason, purchaseId]);
  return { ...change, hash: createHash("sha256").update(identity).digest("hex") };
}

export function lockNumber(text: string): bigint {
  return createHash("sha256").update(text).digest().readBigInt64BE(0);
}

// One number for the idempotency key and one for the entitlement of each request. All numbers are
// taken in ascending order by everyone, so that replicas wait for each other in a line, not in a
// ring. An entitlement needs a lock of its own because its row may not exist yet.
async function lockRequests(tx: Transaction, requests: Request[]): Promise<void> {
  const numbers = requests.flatMap((request) => [
    lockNumber(request.idempotencyKey),
    lockNumber(entitlementLock(request)),
  ]);
  numbers.sort((a, b) => a < b ? -1 : a > b ? 1 : 0);
  await query(
    tx,
    `select count(pg_advisory_xact_lock(number)) from unnest($1::bigint[]) as number`,
    [
      `{${numbers.join()}}`,
    ],
  );
}

// What the database knows of a request, read after its locks were granted.
interface Situation {
  stored_hash: string | null;
  response_code: number | null;
  response_body: string | null;
  status: "ACTIVE" | "REVOKED" | null;
  version: number | null;
  at: string; // the time of the change, later than that of the one before
}

function findSituations(tx: Transaction, requests: Request[]): Promise<Situation[]> {
  const wanted = requests.map(({ idempotencyKey, userId, stockKeepingUnit }) => ({
    idem_key: idempotencyKey,
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

// An answer to store under the key, and with it the change that it reports, if there is one.
interface Stored {
  request: Request;
  answer: Answer;
  at: string;
}

interface Commit extends Stored {
  eventId: string;
  version: number;
}

interface Decision {
  answer: Answer;
  commit?: Commit;
  refusal?: Stored;
}

function decide(request: Request, situation: Situation): Decision {
  const { stored_hash, response_code, response_body, status, version, at } = situation;
  if (stored_hash !== null) {
    return stored_hash === request.hash
      ? { answer: { status: response_code ?? 0, body: response_body ?? "", replayed: true } }
      : { answer: keyConflict };
  }
  const before = status && version ? { status, version } : undefined;
  const after = changed(before, request.action);
  if (!after) {
    const answer = stateConflict[request.action];
    return { answer, refusal: { request, answer, at } };
  }
  const body = JSON.stringify({
    user_id: request.userId,
    stock_keeping_unit: request.stockKeepingUnit,
    status: after.status,
    version: after.version,
    updated_at: at,
  });
  const answer = { status: 200, body, replayed: false };
  return { answer, commit: { request, answer, at, eventId: uuidv7(), version: after.version } };
}

function refuse(error: ApiError): Answer {
  return { status: error.status, body: JSON.stringify(error.body), replayed: false };
}

const keyConflict = refuse(
  new ApiError("IDEMPOTENCY_KEY_CONFLICT", "the Idempotency-Key was used for another request"),
);
const stateConflict = {
  GRANT: refuse(new ApiError("ENTITLEMENT_STATE_CONFLICT", `already ${statusAfter.GRANT}`)),
  REVOKE: refuse(new ApiError("ENTITLEMENT_STATE_CONFLICT", `already ${statusAfter.REVOKE}`)),
};

// The entitlement, its event and its audit entry in one statement: they tell the same, so what they
// tell travels once.
async function storeChanges(tx: Transaction, commits: Commit[]): Promise<void> {
  const rows = commits.map(({ request, at, eventId, version }) => ({
    user_id: request.userId,
    stock_keeping_unit: request.stockKeepingUnit,
    action: request.action,
    status: statusAfter[request.action],
    source: request.reason,
    source_id: request.purchaseId,
    version,
    at,
    request_id: request.idempotencyKey,
    event_id: eventId,
    event_type: eventTypeOf[request.action],
    aggregate_key: aggregateKeyOf(request),
    trace_id: request.traceId,
    traceparent: request.traceparent,
  }));
  await query(
    tx,
    `with change as materialized (
       select *, at::timestamptz as time
       from json_to_recordset($1) as (
         user_id text, stock_keeping_unit text, action text, status text, source text,
         source_id text, version bigint, at text, request_id text, event_id uuid,
         event_type text, aggregate_key text, trace_id text, traceparent text)
     ), stored as (
       insert into entitlements as entitlement
         (user_id, stock_keeping_unit, status, granted_at, revoked_at, source, source_id,
          version, updated_at)
       select user_id, stock_keeping_unit, status,
         case status when 'ACTIVE' then time end, case status when 'REVOKED' then time end,
         source, source_id, version, time
       from change
       on conflict (user_id, stock_keeping_unit) do update set
         status = excluded.status,
         granted_at = coalesce(excluded.granted_at, entitlement.granted_at),
         revoked_at = coalesce(excluded.revoked_at, entitlement.revoked_at),
         source = excluded.source,
         source_id = excluded.source_id,
         version = excluded.version,
         updated_at = excluded.updated_at
     ), announced as (
       insert into outbox_events
         (event_id, event_type, aggregate_key, payload, traceparent, created_at)
       select event_id, event_type, aggregate_key,
         jsonb_build_object(
           'event_id', event_id, 'event_type', event_type, 'occurred_at', at,
           'user_id', user_id, 'stock_keeping_unit', stock_keeping_unit,
           'source', source, 'source_id', source_id,
           'version', version, 'trace_id', trace_id),
         traceparent, time
       from change
     )
     insert into entitlement_audit
       (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
        detail)
     select event_id, time, user_id, stock_keeping_unit, action, source, source_id, request_id,
       jsonb_build_object('version', version, 'trace_id', trace_id)
     from change`,
    [JSON.stringify(rows)],
  );
}

// Only an expired answer may be overwritten. Any other was seen by findSituations under the lock,
// so a row that can't be saved means that the locks failed us: nothing is committed.
async function storeAnswers(tx: Transaction, stored: Stored[], ttlMs: number): Promise<void> {
  const rows = stored.map(({ request, answer }) => ({
    idem_key: request.idempotencyKey,
    request_hash: request.hash,
    response_code: answer.status,
    response_body: answer.body,
  }));
  const saved = await query(
    tx,
    `insert into idempotency_keys as stored
       (idem_key, request_hash, response_code, response_body, created_at, expires_at)
     select idem_key, request_hash, response_code, response_body, now(),
       now() + make_interval(secs => $2::float8 / 1000)
     from json_to_recordset($1) as (
       idem_key text, request_hash text, response_code smallint, response_body text)
     on conflict (idem_key) do update set
       request_hash = excluded.request_hash,
       response_code = excluded.response_code,
       response_body = excluded.response_body,
       created_at = excluded.created_at,
       expires_at = excluded.expires_at
     where stored.expires_at <= now()
     returning 1`,
    [JSON.stringify(rows), ttlMs],
  );
  if (saved.length !== rows.length) throw new Error("An answer was stored under a locked key");
}
