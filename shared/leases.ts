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
  created: string; // as PostgreSQL writes it
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
  created: string;
}

// Leases the oldest rows that are due. A row is left alone while an earlier one of its key is not
// due, or is in the hands of a claim that runs at this moment (and was therefore skipped here).
export async function claimDue<Content>(
  database: Database,
  table: LeasedTable,
  { worker, leaseMs }: Lease,
  limit: number,
  since = "-infinity",
): Promise<LeasedRow<Content>[]> {
  const { name, id, working, orderOfKey, columns } = table;
  const token = crypto.randomUUID();
  const rows = await query<ClaimedRow & Content>(
    database,
    `with ${findDue(table)}, claimable as (
       select place, taken_over
       from found
       where not exists (
         select from ${name} earlier
         where earlier.unfinished
           and earlier.aggregate_key = found.aggregate_key
           and earlier.${orderOfKey} < found.${orderOfKey}
           and earlier.ctid not in (select place from found))
       order by ${orderOfKey}
       limit $1
     ), claimed as (
       update ${name} row
       set status = $5,
         attempt_count = row.attempt_count + claimable.taken_over::int,
         next_retry_at = null,
         locked_by = $2,
         locked_at = clock_timestamp(),
         lease_until = now() + make_interval(secs => $3::float8 / 1000),
         claim_token = $4,
         last_error = null
       from claimable
       where row.ctid = claimable.place
       returning row.*, claimable.taken_over
     )
     select ${id} as id, aggregate_key, attempt_count, taken_over, created_at::text as created,
       ${columns}
     from claimed
     order by ${orderOfKey}`,
    [limit, worker, leaseMs, token, working, since],
  );
  const claimedAt = performance.now();
  return rows.map((row) => ({
    id: row.id,
    key: row.aggregate_key,
    attempts: row.attempt_count,
    takenOver: row.taken_over,
    token,
    claimedAt,
    created: row.created,
    content: row,
  }));
}

// Claims for a worker that comes again and again. While some other transaction is held open the index
// keeps an entry for each row that was finished since, and a scan from its beginning passes them all.
// So only one scan per poll interval begins there. The others begin where the last one found its
// oldest row; in a table without backlog some time before that, because commits overtake each other.
export function claimRepeatedly<Content>(
  database: Database,
  table: LeasedTable,
  lease: Lease & { pollIntervalMs: number },
): (limit: number) => Promise<LeasedRow<Content>[]> {
  let since: string | undefined;
  let nextWholeScan = 0;
  return async (limit) => {
    const from = performance.now();
    const isWhole = from >= nextWholeScan;
    if (isWhole) since = undefined;
    const rows = await claimDue<Content>(database, table, lease, limit, since);
    const now = performance.now();
    if (isWhole) nextWholeScan = now + Math.max(lease.pollIntervalMs, 10 * (now - from));
    if (rows.length > 0) {
      const oldest = rows.reduce((min, { created }) => created < min ? created : min, "~");
      since = rows.length < limit ? before(oldest) : oldest;
    }
    return rows;
  };
}

const overtakingMs = 5_000;

function before(created: string): string {
  return new Date(Date.parse(created) - overtakingMs).toISOString();
}

// Rows that are due, locked, as `found`. By their place in the table, which a locked row keeps.
function findDue({ name, orderOfKey, oldestFirst }: LeasedTable): string {
  const isDue = `row.unfinished
         and ((row.status = 'PENDING' and (row.next_retry_at is null or row.next_retry_at <= now()))
           or (row.status = $5 and (row.lease_until is null or row.lease_until <= now())))`;
  const columns =
    `row.ctid as place, row.aggregate_key, row.${orderOfKey}, row.status = $5 as taken_over`;
  const oldest = `
       select ${columns}
       from ${name} row
       where ${isDue}
         and row.created_at >= $6::timestamptz
         and not exists (
           select from ${name} earlier
           where earlier.unfinished
             and earlier.aggregate_key = row.aggregate_key
             and earlier.${orderOfKey} < row.${orderOfKey}
             and (earlier.next_retry_at > now() or earlier.lease_until > now()))
       order by ${oldestFirst}
       limit $1
       for update skip locked`;
  if (oldestFirst === orderOfKey) return `found as materialized (${oldest})`;
  // The oldest of a key need not be its earliest, so the earlier ones are fetched to them: else a
  // batch of rows that all wait for younger ones would be found again and again.
  return `due as materialized (${oldest}
     ), earlier as materialized (
       select ${columns}
       from (
         select aggregate_key, max(${orderOfKey}) as last from due group by aggregate_key
       ) as line
       join ${name} row
         on row.aggregate_key = line.aggregate_key
         and row.${orderOfKey} < line.last
       where ${isDue}
         and row.ctid not in (select place from due)
       order by row.${orderOfKey}
       limit $1
       for update of row skip locked
     ), found as (
       select * from due union all select * from earlier
     )`;
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
  return await settleRows(
    database,
    retries,
    [retries.map(({ error }) => error), listOf(retries.map(({ delayMs }) => delayMs))],
    `changed as (
       update ${name} row
       set status = 'PENDING',
         attempt_count = row.attempt_count + 1,
         next_retry_at = now() + make_interval(secs => retry.delay_ms / 1000),
         last_error = retry.error,
         ${leaseEnds}
       from unnest($1::uuid[], $2::uuid[], $3::text[], $4::float8[])
         as retry (id, token, error, delay_ms)
       where row.${id} = retry.id
         and row.claim_token = retry.token
       returning row.${id} as id)`,
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
    released,
    [],
    `changed as (
       update ${name} row
       set status = 'PENDING',
         ${leaseEnds}
       from unnest($1::uuid[], $2::uuid[]) as released (id, token)
       where row.${id} = released.id
         and row.claim_token = released.token
       returning row.${id} as id)`,
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
  const kept = await settleRows(
    database,
    held.map((row) => ({ row })),
    [leaseMs],
    `owned as (
       select row.${id}
       from unnest($1::uuid[], $2::uuid[]) as held (id, token)
       join ${name} row
         on row.${id} = held.id
         and row.claim_token = held.token
       for update of row skip locked
     ), changed as (
       update ${name} row
       set lease_until = now() + make_interval(secs => $3::float8 / 1000)
       from owned
       where row.${id} = owned.${id}
       returning row.${id} as id)`,
  );
  return new Set(kept);
}

// One statement for all the rows: $1 are their ids, $2 the tokens that it has to present, and then
// come its own values. Its part `changed` returns the ids of the rows that it changed.
export async function settleRows(
  database: Database,
  settled: { row: LeasedRow<unknown> }[],
  values: unknown[],
  parts: string,
): Promise<string[]> {
  if (settled.length === 0) return [];
  const ids = settled.map(({ row }) => row.id);
  const tokens = settled.map(({ row }) => row.token);
  const [changed] = await query<{ some: string[] | null }>(
    database,
    // Most often all were changed, and then there is no need to name them.
    `with ${parts}
     select case when count(*) < cardinality($1::uuid[]) then coalesce(array_agg(id::text), '{}') end as some
     from changed`,
    [listOf(ids), listOf(tokens), ...values],
  );
  return changed?.some ?? ids;
}

// An array for PostgreSQL, of what needs no quotes.
export function listOf(items: (string | number)[]): string {
  return `{${items.join()}}`;
}
