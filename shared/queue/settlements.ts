import { type Database, query, type Transaction } from "../postgres/postgres.ts";
import { list, listOf, literal, name, nothing, type Sql, sql } from "../postgres/sql.ts";
import type { Settlement } from "./job.ts";
import type { LeasedRow } from "./leased_row.ts";
import { columnsOf, type TableDescription } from "./leased_table.ts";
import { settleRows } from "./settle_statement.ts";

// How the lease of a row ends, and how it is extended. Each statement changes only rows that are
// still leased under the given tokens, and returns their ids.

type Row<Content> = LeasedRow<Content>;
type Settled<Content, Result, Kind> = Extract<
  Settlement<Row<Content>, Result>,
  { kind: Kind }
>;

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
    ...release(database, table, ofKind(settled, "released")),
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

// For work that settles its rows itself, this is a part of the transaction of its effects, and fails if
// a lease was lost.
export async function markDone<Content, Result>(
  on: Database | Transaction,
  table: TableDescription<Content, Result>,
  done: { row: Row<Content>; result: Result }[],
  leaseLost?: string,
): Promise<string[]> {
  const { status, values: ofResult = {}, ...ending } = table.done;
  const values = Object.values(ofResult).map(({ type, of }) => {
    const items = done.map(({ row, result }) => of(row, result));
    return sql`${type === "text" ? items : listOf(items)}::${name(type)}[]`;
  });
  const columns = Object.keys(ofResult).map(name);
  return await settleRows(on, table, done, {
    columns: list([nothing, ...columns]),
    values: list([nothing, ...values]),
    sets: [sql`status = ${literal(status)}`],
    ending,
    ...(table.attempt ? { outcome: table.attempt.succeeded } : {}),
    onlyTried: true,
    leaseLost,
  });
}

async function scheduleRetry<Content, Result>(
  database: Database,
  table: TableDescription<Content, Result>,
  retries: Settled<Content, Result, "retry">[],
): Promise<string[]> {
  const { attempts, retryAt, error } = columnsOf(table);
  return await settleRows(database, table, retries, {
    columns: sql`, error, delay_ms`,
    values: sql`, ${retries.map(({ error }) => error)}::text[],
      ${listOf(retries.map(({ delayMs }) => delayMs))}::float8[]`,
    sets: [
      sql`status = ${table.retried?.status ?? literal("PENDING")}`,
      sql`${attempts} = row.${attempts} + 1`,
      sql`${retryAt} = now() + make_interval(secs => settled.delay_ms / 1000)`,
      sql`${error} = settled.error`,
    ],
    ending: table.retried,
    outcome: literal("RETRIED"),
  });
}

// Puts rows back as if never claimed, some of them for later. Nothing is counted. Where attempts are
// recorded in full, those that were tried are recorded, too.
function release<Content, Result>(
  database: Database,
  table: TableDescription<Content, Result>,
  released: Settled<Content, Result, "released">[],
): Promise<string[]>[] {
  const { released: ending, attempt } = table;
  const { retryAt, error } = columnsOf(table);
  const put = (rows: typeof released, tried?: { sets: Sql[]; outcome: Sql }) =>
    settleRows(database, table, rows, {
      columns: tried ? sql`, error, delay_ms` : sql`, delay_ms`,
      values: sql`${tried ? sql`, ${rows.map(({ error = "" }) => error)}::text[]` : nothing}, ${
        listOf(rows.map(({ delayMs }) => delayMs ?? "null"))
      }::float8[]`,
      sets: [
        sql`status = ${ending?.status ?? literal("PENDING")}`,
        sql`${retryAt} = now() + make_interval(secs => settled.delay_ms / 1000)`,
        ...(tried?.sets ?? []),
      ],
      ending,
      ...(tried ? { outcome: tried.outcome } : { withoutAttempt: true }),
    });
  const isTried = ({ result }: typeof released[number]) => attempt && result !== undefined;
  return [
    put(released.filter((one) => !isTried(one))),
    ...(attempt
      ? [put(released.filter(isTried), {
        sets: [sql`${error} = settled.error`],
        outcome: attempt.putOff,
      })]
      : []),
  ];
}

async function markFailed<Content, Result>(
  database: Database,
  table: TableDescription<Content, Result>,
  failures: Settled<Content, Result, "failed">[],
): Promise<string[]> {
  const { attempts, error } = columnsOf(table);
  return await settleRows(database, table, failures, {
    columns: sql`, error, attempted`,
    values: sql`, ${failures.map(({ error }) => error)}::text[],
      ${listOf(failures.map(({ attempted }) => `${attempted}`))}::boolean[]`,
    sets: [
      sql`status = ${table.failed?.status ?? literal("FAILED")}`,
      sql`${attempts} = row.${attempts} + settled.attempted::int`,
      sql`${error} = settled.error`,
    ],
    ending: table.failed,
    outcome: literal("GAVE_UP"),
  });
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
