import { type Database, query } from "@kenri/shared/postgres";
import type { Claimed, Settlement } from "@kenri/shared/worker";

// The states of an outbox row and every move between them:
//   PENDING → IN_FLIGHT      claimed
//   IN_FLIGHT → IN_FLIGHT    claimed again, because the lease ran out
//   IN_FLIGHT → PUBLISHED    acknowledged by the stream
//   IN_FLIGHT → PENDING      to be tried again, or released
//   IN_FLIGHT → FAILED       gave up
//   PUBLISHED → PENDING      lost by the stream (lost_events.ts)

export interface OutboxRow extends Claimed {
  eventType: string;
  payload: unknown;
  traceparent: string | null;
  token: string;
}

export interface Published {
  generation: number;
  sequence: number;
  ackedAt: number; // by performance.now()
}

export type Settled = Settlement<OutboxRow, Published>;

interface ClaimedRow {
  event_id: string;
  event_type: string;
  aggregate_key: string;
  payload: unknown;
  traceparent: string | null;
  attempt_count: number;
  taken_over: boolean;
}

export interface Lease {
  worker: string; // for people; the token is what protects
  leaseMs: number;
}

// Leases the oldest rows that are due. A row is left alone while an older one of its key is not
// due, or is in the hands of a claim that runs at this moment (and was therefore skipped here).
export async function claimDue(
  database: Database,
  { worker, leaseMs }: Lease,
  limit: number,
): Promise<OutboxRow[]> {
  const token = crypto.randomUUID();
  const rows = await query<ClaimedRow>(
    database,
    `with due as materialized (
       select event_id, aggregate_key, created_at, status = 'IN_FLIGHT' as taken_over
       from outbox_events row
       where unfinished
         and ((status = 'PENDING' and (next_retry_at is null or next_retry_at <= now()))
           or (status = 'IN_FLIGHT' and (lease_until is null or lease_until <= now())))
         and not exists (
           select from outbox_events older
           where older.unfinished
             and older.aggregate_key = row.aggregate_key
             and older.created_at < row.created_at
             and (older.next_retry_at > now() or older.lease_until > now()))
       order by created_at
       limit $1
       for update skip locked
     ), claimable as (
       select event_id, created_at, taken_over
       from due
       where not exists (
         select from outbox_events older
         where older.unfinished
           and older.aggregate_key = due.aggregate_key
           and older.created_at < due.created_at
           and older.event_id not in (select event_id from due))
     ), claimed as (
       update outbox_events row
       set status = 'IN_FLIGHT',
         attempt_count = row.attempt_count + claimable.taken_over::int,
         next_retry_at = null,
         locked_by = $2,
         locked_at = now(),
         lease_until = now() + make_interval(secs => $3::float8 / 1000),
         claim_token = $4,
         last_error = null
       from claimable
       where row.event_id = claimable.event_id
       returning row.event_id, row.event_type, row.aggregate_key, row.payload, row.traceparent,
         row.attempt_count, row.created_at, claimable.taken_over
     )
     select event_id, event_type, aggregate_key, payload, traceparent, attempt_count, taken_over
     from claimed
     order by created_at`,
    [limit, worker, leaseMs, token],
  );
  return rows.map((row) => ({
    id: row.event_id,
    key: row.aggregate_key,
    attempts: row.attempt_count,
    takenOver: row.taken_over,
    eventType: row.event_type,
    payload: row.payload,
    traceparent: row.traceparent,
    token,
  }));
}

// Each outcome has its own statement; all are sent at once.
export async function settle(database: Database, settled: Settled[]): Promise<Set<string>> {
  const of = <Kind extends Settled["kind"]>(kind: Kind) =>
    settled.filter((one): one is Extract<Settled, { kind: Kind }> => one.kind === kind);
  const owned = await Promise.all([
    markPublished(database, of("done")),
    scheduleRetry(database, of("retry")),
    markFailed(database, of("failed")),
    release(database, of("released")),
  ]);
  return new Set(owned.flat().map(({ event_id }) => event_id));
}

type Owned = { event_id: string }[];

// published_at is the time of the ack: now, less the time since then by this process's clock.
async function markPublished(
  database: Database,
  done: Extract<Settled, { kind: "done" }>[],
): Promise<Owned> {
  if (done.length === 0) return [];
  const rows = done.map(({ row, result }) => ({
    event_id: row.id,
    token: row.token,
    generation: result.generation,
    sequence: result.sequence,
    age_ms: performance.now() - result.ackedAt,
  }));
  return await query(
    database,
    `update outbox_events row
     set status = 'PUBLISHED',
       published_at = now() - make_interval(secs => acked.age_ms / 1000),
       stream_generation = acked.generation,
       stream_seq = acked.sequence,
       locked_by = null, locked_at = null, lease_until = null, claim_token = null
     from json_to_recordset($1) as acked (
       event_id uuid, token uuid, generation bigint, sequence bigint, age_ms float8)
     where row.event_id = acked.event_id
       and row.claim_token = acked.token
     returning row.event_id`,
    [JSON.stringify(rows)],
  );
}

async function scheduleRetry(
  database: Database,
  retries: Extract<Settled, { kind: "retry" }>[],
): Promise<Owned> {
  if (retries.length === 0) return [];
  const rows = retries.map(({ row, error, delayMs }) => ({
    event_id: row.id,
    token: row.token,
    error,
    delay_ms: delayMs,
  }));
  return await query(
    database,
    `update outbox_events row
     set status = 'PENDING',
       attempt_count = row.attempt_count + 1,
       next_retry_at = now() + make_interval(secs => retry.delay_ms / 1000),
       last_error = retry.error,
       locked_by = null, locked_at = null, lease_until = null, claim_token = null
     from json_to_recordset($1) as retry (
       event_id uuid, token uuid, error text, delay_ms float8)
     where row.event_id = retry.event_id
       and row.claim_token = retry.token
     returning row.event_id`,
    [JSON.stringify(rows)],
  );
}

async function markFailed(
  database: Database,
  failures: Extract<Settled, { kind: "failed" }>[],
): Promise<Owned> {
  if (failures.length === 0) return [];
  const rows = failures.map(({ row, error, attempted }) => ({
    event_id: row.id,
    token: row.token,
    attempted,
    error,
  }));
  return await query(
    database,
    `update outbox_events row
     set status = 'FAILED',
       attempt_count = row.attempt_count + failure.attempted::int,
       last_error = failure.error,
       locked_by = null, locked_at = null, lease_until = null, claim_token = null
     from json_to_recordset($1) as failure (
       event_id uuid, token uuid, attempted boolean, error text)
     where row.event_id = failure.event_id
       and row.claim_token = failure.token
     returning row.event_id`,
    [JSON.stringify(rows)],
  );
}

// Back as if never claimed: nothing was tried, so nothing is counted.
async function release(
  database: Database,
  released: Extract<Settled, { kind: "released" }>[],
): Promise<Owned> {
  if (released.length === 0) return [];
  const rows = released.map(({ row }) => ({ event_id: row.id, token: row.token }));
  return await query(
    database,
    `update outbox_events row
     set status = 'PENDING',
       locked_by = null, locked_at = null, lease_until = null, claim_token = null
     from json_to_recordset($1) as released (event_id uuid, token uuid)
     where row.event_id = released.event_id
       and row.claim_token = released.token
     returning row.event_id`,
    [JSON.stringify(rows)],
  );
}

// The heartbeat: rows that are still in hand keep their lease.
export async function extendLeases(
  database: Database,
  rows: OutboxRow[],
  leaseMs: number,
): Promise<void> {
  await query(
    database,
    `update outbox_events row
     set lease_until = now() + make_interval(secs => $2::float8 / 1000)
     from json_to_recordset($1) as held (event_id uuid, token uuid)
     where row.event_id = held.event_id
       and row.claim_token = held.token`,
    [JSON.stringify(rows.map(({ id, token }) => ({ event_id: id, token }))), leaseMs],
  );
}
