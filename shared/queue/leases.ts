import type { Claimed, Settlement } from "./job.ts";
import { type Database, query } from "../postgres/postgres.ts";

// The statements that all tables of leased rows share after the claim (claims.ts): retry, release,
// give up, and the heartbeat. Each table defines for itself what it means to be done.

export interface LeasedTable {
  name: string;
  id: string;
  attempts: string; // the table that records what happened to its rows, except success
  working: string; // the status of a leased row
  positionColumn: string; // the order of rows with the same aggregate_key
  claimOrder: string; // the order of the index of unfinished rows
  columns: string; // what the work on a claimed row needs
  endsWithClaim?: string; // another column that a claim sets
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

// A row as returned by the statement that leased it.
export interface ReturnedRow {
  id: string;
  aggregate_key: string;
}

export function leasedRow<Content>(
  row: ReturnedRow & Content,
  token: string,
  attempts = 0,
  takenOver = false,
): LeasedRow<Content> {
  return {
    id: row.id,
    key: row.aggregate_key,
    attempts,
    takenOver,
    token,
    claimedAt: performance.now(),
    content: row,
  };
}

// For an insert of new rows: the columns, their values, and the join that supplies the values. A
// row is PENDING if there is no lease, if an earlier row of its key is unfinished, or if `where` is
// false.
export const leaseColumns = "status, locked_by, locked_at, lease_until, claim_token";
export const leaseValues = `coalesce(lease.status, 'PENDING'), lease.locked_by, lease.locked_at,
         lease.lease_until, lease.claim_token`;

export function leaseOfNew(
  { name, working, positionColumn }: LeasedTable,
  { key, position, where = "true" }: { key: string; position: string; where?: string },
  [worker, leaseMs, token]: [string, string, string],
): string {
  return `left join lateral (
         select '${working}' as status, ${worker}::text as locked_by, clock_timestamp() as locked_at,
           now() + make_interval(secs => ${leaseMs}::float8 / 1000) as lease_until,
           ${token}::uuid as claim_token
         where ${token} is not null
           and ${where}
           and not exists (
             select from ${name} earlier
             where ${isUnfinishedByKey("earlier")}
               and earlier.aggregate_key = ${key}
               and earlier.${positionColumn} < ${position}
             offset 0)
       ) as lease on true`;
}

// Means `unfinished`, but written so that it matches only the index of keys. With `unfinished` the
// planner might take the index of the oldest rows, which looks just as empty.
export function isUnfinishedByKey(row: string): string {
  return `${row}.unfinished::int = 1`;
}

// Every settle also ends the lease.
export const leaseEnds =
  "locked_by = null, locked_at = null, lease_until = null, claim_token = null";

// The settlements of one kind.
function ofKind<Row, Result, Kind extends Settlement<Row, Result>["kind"]>(
  settled: Settlement<Row, Result>[],
  kind: Kind,
): Extract<Settlement<Row, Result>, { kind: Kind }>[] {
  return settled.filter((one): one is Extract<Settlement<Row, Result>, { kind: Kind }> =>
    one.kind === kind
  );
}

// Sends one statement for each outcome, all at once. The caller defines what it means to be done or
// to have failed. Returns the ids of the rows whose lease this worker still had.
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
  table: LeasedTable,
  retries: { row: Row; error: string; delayMs: number }[],
): Promise<string[]> {
  const { name, id } = table;
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
       returning row.${id} as id, row.last_error as error), ${recordsAttempt(table, "RETRIED")}`,
  );
}

// Puts rows back as if never claimed. Nothing was tried, so nothing is counted.
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

// Settles rows that failed for good. It can also return what the dead letter needs.
export function failsForGood(table: LeasedTable, alsoReturning = ""): string {
  const { name, id } = table;
  return `changed as (
       update ${name} row
       set status = 'FAILED',
         attempt_count = row.attempt_count + failure.attempted::int,
         last_error = failure.error,
         ${leaseEnds}
       from unnest($1::uuid[], $2::uuid[], $3::text[], $4::boolean[])
         as failure (id, token, error, attempted)
       where row.${id} = failure.id
         and row.claim_token = failure.token
       returning row.${id} as id, row.last_error as error ${alsoReturning}), ${
    recordsAttempt(table, "GAVE_UP")
  }`;
}

// The part of a statement that records the outcome of attempts. Each part sees the tables as they
// were before the statement, so here the row still contains who held it and since when.
export function recordsAttempt(
  { name, id, attempts }: LeasedTable,
  outcome: "RETRIED" | "GAVE_UP" | "TAKEN_OVER",
): string {
  return `recorded as (
       insert into ${attempts} (${id}, outcome, worker, begun_at, error)
       select before.${id}, '${outcome}', before.locked_by, before.locked_at, changed.error
       from changed
       join ${name} before on before.${id} = changed.id)`;
}

// The heartbeat: extends the leases of rows in hand, and returns the ids of those that were still
// leased. It skips locked rows, because waiting could deadlock with a settle of the same rows.
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

// Runs one statement for all rows. $1 are their ids and $2 their tokens; its own values follow. Its
// part `changed` must return the ids of the rows that it changed.
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
    // Usually all rows were changed; then their ids need not be returned.
    `with ${parts}
     select case when count(*) < cardinality($1::uuid[]) then coalesce(array_agg(id::text), '{}') end as some
     from changed`,
    [listOf(ids), listOf(tokens), ...values],
  );
  return changed?.some ?? ids;
}

// An array literal for PostgreSQL. The items must not need quotes.
export function listOf(items: (string | number)[]): string {
  return `{${items.join()}}`;
}
