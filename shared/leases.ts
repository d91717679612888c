import { type Database, query } from "./postgres.ts";
import type { Claimed, Settlement } from "./worker.ts";

// The moves that every table of leased rows has in common: claim, try again, release, and the
// heartbeat. What it means to be done, or to have failed, the owner of the table says itself.

export interface LeasedTable {
  name: string;
  id: string;
  working: string; // the status of a row that is leased
  orderOfKey: string; // rows of one aggregate_key go by this column
  oldestFirst: string; // as in the index of unfinished rows
  columns: string; // what a claimed row carries to its work
}

export interface LeasedRow<Content> extends Claimed {
  token: string; // proves the lease
  claimedAt: number; // by performance.now(); the row's locked_at by the database's clock
  content: Content;
}

export interface Lease {
  worker: string; // for people; the token is what protects
  leaseMs: number;
}

// What every settle does besides.
export const leaseEnds =
  "locked_by = null, locked_at = null, lease_until = null, claim_token = null";

interface ClaimedRow {
  id: string;
  aggregate_key: string;
  attempt_count: number;
  taken_over: boolean;
}

// Leases the oldest rows that are due. A row is left alone while an earlier one of its key is not
// due, or is in the hands of a claim that runs at this moment (and was therefore skipped here). The
// oldest of a key need not be its earliest, so the earlier ones are fetched to them: else a batch
// of rows that all wait for younger ones would be found again and again.
export async function claimDue<Content>(
  database: Database,
  { name, id, working, orderOfKey, oldestFirst, columns }: LeasedTable,
  { worker, leaseMs }: Lease,
  limit: number,
): Promise<LeasedRow<Content>[]> {
  const token = crypto.randomUUID();
  const isDue = `row.unfinished
         and ((row.status = 'PENDING' and (row.next_retry_at is null or row.next_retry_at <= now()))
           or (row.status = $5 and (row.lease_until is null or row.lease_until <= now())))`;
  const rows = await query<ClaimedRow & Content>(
    database,
    `with due as materialized (
       select ${id}, aggregate_key, ${orderOfKey}, status = $5 as taken_over
       from ${name} row
       where ${isDue}
         and not exists (
           select from ${name} earlier
           where earlier.unfinished
             and earlier.aggregate_key = row.aggregate_key
             and earlier.${orderOfKey} < row.${orderOfKey}
             and (earlier.next_retry_at > now() or earlier.lease_until > now()))
       order by ${oldestFirst}
       limit $1
       for update skip locked
     ), earlier as materialized (
       select row.${id}, row.aggregate_key, row.${orderOfKey}, row.status = $5 as taken_over
       from (
         select aggregate_key, max(${orderOfKey}) as last from due group by aggregate_key
       ) as line
       join ${name} row
         on row.aggregate_key = line.aggregate_key
         and row.${orderOfKey} < line.last
       where ${isDue}
         and row.${id} not in (select ${id} from due)
       order by row.${orderOfKey}
       limit $1
       for update of row skip locked
     ), found as (
       select * from due union all select * from earlier
     ), claimable as (
       select ${id}, taken_over
       from found
       where not exists (
         select from ${name} earlier
         where earlier.unfinished
           and earlier.aggregate_key = found.aggregate_key
           and earlier.${orderOfKey} < found.${orderOfKey}
           and earlier.${id} not in (select ${id} from found))
       order by ${orderOfKey}
       limit $1
     ), claimed as (
       update ${name} row
       set status = $5,
         attempt_count = row.attempt_count + claimable.taken_over::int,
         next_retry_at = null,
         locked_by = $2,
         locked_at = now(),
         lease_until = now() + make_interval(secs => $3::float8 / 1000),
         claim_token = $4,
         last_error = null
       from claimable
       where row.${id} = claimable.${id}
       returning row.*, claimable.taken_over
     )
     select ${id} as id, aggregate_key, attempt_count, taken_over, ${columns}
     from claimed
     order by ${orderOfKey}`,
    [limit, worker, leaseMs, token, working],
  );
  const claimedAt = performance.now();
  return rows.map((row) => ({
    id: row.id,
    key: row.aggregate_key,
    attempts: row.attempt_count,
    takenOver: row.taken_over,
    token,
    claimedAt,
    content: row,
  }));
}

// The settlements of one kind.
function ofKind<Row, Result, Kind extends Settlement<Row, Result>["kind"]>(
  settled: Settlement<Row, Result>[],
  kind: Kind,
): Extract<Settlement<Row, Result>, { kind: Kind }>[] {
  return settled.filter((one): one is Extract<Settlement<Row, Result>, { kind: Kind }> =>
    one.kind === kind
  );
}

// Each outcome has its own statement; all are sent at once. What it means to be done or to have
// failed the owner of the table says. Returns the ids that were still ours.
export async function settleEach<Row extends LeasedRow<unknown>, Result>(
  database: Database,
  table: LeasedTable,
  settled: Settlement<Row, Result>[],
  markDone: (done: { row: Row; result: Result }[]) => Promise<string[]>,
  markFailed: (failures: { row: Row; error: string; attempted: boolean }[]) => Promise<string[]>,
): Promise<Set<string>> {
  const owned = await Promise.all([
    markDone(ofKind(settled, "done")),
    scheduleRetry(database, table, ofKind(settled, "retry")),
    markFailed(ofKind(settled, "failed")),
    release(database, table, ofKind(settled, "released")),
  ]);
  return new Set(owned.flat());
}

// These return the ids of the rows that were still leased under the given tokens.

async function scheduleRetry<Row extends LeasedRow<unknown>>(
  database: Database,
  { name, id }: LeasedTable,
  retries: { row: Row; error: string; delayMs: number }[],
): Promise<string[]> {
  const rows = retries.map(({ row, error, delayMs }) => ({
    ...proof(row),
    error,
    delay_ms: delayMs,
  }));
  return await settleRows(
    database,
    `update ${name} row
     set status = 'PENDING',
       attempt_count = row.attempt_count + 1,
       next_retry_at = now() + make_interval(secs => retry.delay_ms / 1000),
       last_error = retry.error,
       ${leaseEnds}
     from json_to_recordset($1) as retry (id uuid, token uuid, error text, delay_ms float8)
     where row.${id} = retry.id
       and row.claim_token = retry.token
     returning row.${id} as id`,
    rows,
  );
}

// Back as if never claimed: nothing was tried, so nothing is counted.
async function release<Row extends LeasedRow<unknown>>(
  database: Database,
  { name, id }: LeasedTable,
  released: { row: Row }[],
): Promise<string[]> {
  return await settleRows(
    database,
    `update ${name} row
     set status = 'PENDING',
       ${leaseEnds}
     from json_to_recordset($1) as released (id uuid, token uuid)
     where row.${id} = released.id
       and row.claim_token = released.token
     returning row.${id} as id`,
    released.map(({ row }) => proof(row)),
  );
}

// The heartbeat: rows that are still in hand keep their lease. Returns the ids of those that do. It
// waits for no lock, lest it form a ring with a settle of the same rows.
export async function extendLeases<Row extends LeasedRow<unknown>>(
  database: Database,
  { name, id }: LeasedTable,
  held: Row[],
  leaseMs: number,
): Promise<Set<string>> {
  const kept = await query<{ id: string }>(
    database,
    `with owned as (
       select row.${id}
       from json_to_recordset($1) as held (id uuid, token uuid)
       join ${name} row
         on row.${id} = held.id
         and row.claim_token = held.token
       for update of row skip locked
     )
     update ${name} row
     set lease_until = now() + make_interval(secs => $2::float8 / 1000)
     from owned
     where row.${id} = owned.${id}
     returning row.${id} as id`,
    [JSON.stringify(held.map(proof)), leaseMs],
  );
  return new Set(kept.map(({ id }) => id));
}

// What a settle has to present.
export function proof({ id, token }: LeasedRow<unknown>): { id: string; token: string } {
  return { id, token };
}

// One statement that settles all the rows, given as JSON, and returns the ids of those it changed.
export async function settleRows(
  database: Database,
  statement: string,
  rows: unknown[],
): Promise<string[]> {
  if (rows.length === 0) return [];
  const changed = await query<{ id: string }>(database, statement, [JSON.stringify(rows)]);
  return changed.map(({ id }) => id);
}
