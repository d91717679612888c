import { type Database, query, type Transaction } from "../postgres/postgres.ts";
import { list, listOf, literal, name, nothing, type Sql, sql } from "../postgres/sql.ts";
import type { Settlement } from "./job.ts";
import type { LeasedRow } from "./leased_row.ts";
import type { TableDescription } from "./leased_table.ts";

// How the lease of a row ends, and how it is extended. Each statement changes only rows that are
// still leased under the given tokens, and returns their ids.

// Every settle also ends the lease.
const leaseEnds = sql`locked_by = null, locked_at = null, lease_until = null, claim_token = null`;

type Row<Content> = LeasedRow<Content>;

// Sends one statement for each outcome, all at once. Returns the ids of the rows whose lease this
// worker still had.
export async function settleEach<Content, Result>(
  database: Database,
  table: TableDescription<Content, Result>,
  settled: Settlement<Row<Content>, Result>[],
): Promise<Set<string>> {
  const owned = await Promise.all([
    markDone(database, table, ofKind(settled, "done")),
    scheduleRetry(database, table, ofKind(settled, "retry")),
    markFailed(database, table, ofKind(settled, "failed")),
    release(database, table, ofKind(settled, "released")),
  ]);
  return new Set(owned.flat());
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

// For work that settles its rows itself, this is a part of the transaction of its effects.
export async function markDone<Content, Result>(
  on: Database | Transaction,
  table: TableDescription<Content, Result>,
  done: { row: Row<Content>; result: Result }[],
): Promise<string[]> {
  const { set, returning, also, values: ofResult = {} } = table.done;
  const values = Object.values(ofResult).map(({ type, of }) => {
    const items = done.map(({ row, result }) => of(row, result));
    return sql`${type === "text" ? items : listOf(items)}::${name(type)}[]`;
  });
  const columns = Object.keys(ofResult).map(name);
  return await settleRows(on, table, done, {
    columns: list([nothing, ...columns]),
    values: list([nothing, ...values]),
    set: list([
      sql`status = ${literal(table.done.status)}`,
      ...(set ? [set] : []),
    ], ",\n    "),
    returning,
    also,
  });
}

async function scheduleRetry<Content>(
  database: Database,
  table: TableDescription<Content>,
  retries: { row: Row<Content>; error: string; delayMs: number }[],
): Promise<string[]> {
  return await settleRows(database, table, retries, {
    columns: sql`, error, delay_ms`,
    values: sql`, ${retries.map(({ error }) => error)}::text[],
      ${listOf(retries.map(({ delayMs }) => delayMs))}::float8[]`,
    set: sql`status = 'PENDING',
    attempt_count = row.attempt_count + 1,
    next_retry_at = now() + make_interval(secs => settled.delay_ms / 1000),
    last_error = settled.error`,
    also: recordsAttempt(table, "RETRIED"),
  });
}

// Puts rows back as if never claimed, some of them for later. Nothing was tried, so nothing is
// counted.
async function release<Content>(
  database: Database,
  table: TableDescription<Content>,
  released: { row: Row<Content>; delayMs?: number }[],
): Promise<string[]> {
  return await settleRows(database, table, released, {
    columns: sql`, delay_ms`,
    values: sql`, ${listOf(released.map(({ delayMs }) => delayMs ?? "null"))}::float8[]`,
    set: sql`status = 'PENDING',
    next_retry_at = now() + make_interval(secs => settled.delay_ms / 1000)`,
  });
}

async function markFailed<Content>(
  database: Database,
  table: TableDescription<Content>,
  failures: { row: Row<Content>; error: string; attempted: boolean }[],
): Promise<string[]> {
  const { failed } = table;
  return await settleRows(database, table, failures, {
    columns: sql`, error, attempted`,
    values: sql`, ${failures.map(({ error }) => error)}::text[],
      ${listOf(failures.map(({ attempted }) => `${attempted}`))}::boolean[]`,
    set: sql`status = 'FAILED',
    attempt_count = row.attempt_count + settled.attempted::int,
    last_error = settled.error`,
    returning: failed?.returning,
    also: failed
      ? sql`${recordsAttempt(table, "GAVE_UP")}, ${failed.also}`
      : recordsAttempt(table, "GAVE_UP"),
  });
}

// The part of a statement that records the outcome of attempts. Each part sees the tables as they
// were before the statement, so here the row still contains who held it and since when.
export function recordsAttempt<Content>(
  table: TableDescription<Content>,
  outcome: "RETRIED" | "GAVE_UP" | "TAKEN_OVER",
): Sql {
  const id = name(table.id);
  return sql`recorded as (
  insert into ${name(table.attempts)} (${id}, outcome, worker, begun_at, error)
  select before.${id}, ${literal(outcome)}, before.locked_by, before.locked_at, changed.error
  from changed
  join ${name(table.name)} before on before.${id} = changed.id
)`;
}

interface Parts {
  columns: Sql;
  values: Sql;
  set: Sql;
  returning?: Sql | undefined;
  also?: Sql | undefined;
}

// Usually all rows were changed, and then their ids need not be returned.
async function settleRows<Content>(
  on: Database | Transaction,
  table: TableDescription<Content>,
  settled: { row: Row<Content> }[],
  { columns, values, set, returning, also }: Parts,
): Promise<string[]> {
  if (settled.length === 0) return [];
  const ids = settled.map(({ row }) => row.id);
  const tokens = settled.map(({ row }) => row.token);
  const [rows, id] = [name(table.name), name(table.id)];
  const [changed] = await query<{ some: string[] | null }>(
    on,
    sql`with changed as (
  update ${rows} row
  set ${set},
    ${leaseEnds}
  from unnest(${listOf(ids)}::uuid[], ${listOf(tokens)}::uuid[]${values})
    as settled (id, token${columns})
  where row.${id} = settled.id
    and row.claim_token = settled.token
  returning row.${id} as id, row.last_error as error${returning ? sql`, ${returning}` : nothing}
)${also ? sql`, ${also}` : nothing}
select case when count(*) < ${ids.length} then coalesce(array_agg(id::text), '{}') end as some
from changed`,
  );
  return changed?.some ?? ids;
}

// The heartbeat: extends the leases of rows in hand, and returns the ids of those that were still
// leased. It skips locked rows, because waiting could deadlock with a settle of the same rows.
export async function extendLeases<Content>(
  database: Database,
  table: TableDescription<Content>,
  held: Row<Content>[],
  leaseMs: number,
): Promise<Set<string>> {
  const [rows, id] = [name(table.name), name(table.id)];
  const kept = await query<{ id: string }>(
    database,
    sql`with owned as (
  select row.${id}
  from unnest(${listOf(held.map(({ id }) => id))}::uuid[],
    ${listOf(held.map(({ token }) => token))}::uuid[]) as held (id, token)
  join ${rows} row
    on row.${id} = held.id
    and row.claim_token = held.token
  for update of row skip locked
)
update ${rows} row
set lease_until = now() + make_interval(secs => ${leaseMs}::float8 / 1000)
from owned
where row.${id} = owned.${id}
returning row.${id} as id`,
  );
  return new Set(kept.map(({ id }) => id));
}
