import { type Database, query, type Transaction } from "../postgres/postgres.ts";
import { list, listOf, literal, name, nothing, type Sql, sql } from "../postgres/sql.ts";
import type { Settlement } from "./job.ts";
import type { LeasedRow } from "./leased_row.ts";
import { columnsOf, type Ending, type TableDescription } from "./leased_table.ts";

// How the lease of a row ends, and how it is extended. Each statement changes only rows that are
// still leased under the given tokens, and returns their ids.

// Every settle also ends the lease.
const leaseEnds = sql`locked_by = null, locked_at = null, lease_until = null, claim_token = null`;

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

// For work that settles its rows itself, this is a part of the transaction of its effects.
export async function markDone<Content, Result>(
  on: Database | Transaction,
  table: TableDescription<Content, Result>,
  done: { row: Row<Content>; result: Result }[],
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

// The part of a statement that records the outcome of attempts. Each part sees the tables as they
// were before the statement, so here the row still contains who held it and since when.
export function recordsAttempt<Content>(
  table: Pick<TableDescription<Content>, "id" | "name" | "attempts">,
  outcome: Sql,
  { more = [], where = nothing }: { more?: Sql[]; where?: Sql } = {},
): Sql {
  const id = name(table.id);
  return sql`recorded as (
  insert into ${name(table.attempts)} (${id}, outcome, worker, begun_at, error${
    list([nothing, ...more])
  })
  select before.${id}, ${outcome}, before.locked_by, before.locked_at, changed.error${
    list([nothing, ...more.map((column) => sql`changed.${column}`)])
  }
  from changed
  join ${name(table.name)} before on before.${id} = changed.id${where}
)`;
}

interface Parts {
  columns: Sql;
  values: Sql;
  sets: Sql[];
  ending: Pick<Ending, "set" | "returning" | "also"> | undefined;
  outcome?: Sql; // of the attempts to record
  onlyTried?: boolean; // record only what was tried
  withoutAttempt?: boolean; // nothing was tried
}

// Usually all rows were changed, and then their ids need not be returned.
async function settleRows<Content, Result>(
  on: Database | Transaction,
  table: TableDescription<Content, Result>,
  settled: { row: Row<Content>; result?: Result }[],
  parts: Parts,
): Promise<string[]> {
  if (settled.length === 0) return [];
  const ids = settled.map(({ row }) => row.id);
  const tokens = settled.map(({ row }) => row.token);
  const [rows, id, { error }] = [name(table.name), name(table.id), columnsOf(table)];
  const { ending: { set, returning, also } = {}, outcome, onlyTried, withoutAttempt } = parts;
  const attempt = withoutAttempt ? undefined : attemptOf(table, settled);
  const recorded = outcome && recordsAttempt(table, outcome, {
    ...(attempt ? { more: attempt.names } : {}),
    ...(attempt && onlyTried ? { where: sql`\n  where changed.tried` } : {}),
  });
  const sets = [...parts.sets, ...(attempt ? [attempt.set] : []), ...(set ? [set] : [])];
  const returned = [
    ...(attempt
      ? [sql`settled.tried`, ...attempt.names.map((column) => sql`settled.${column}`)]
      : []),
    ...(returning ? [returning] : []),
  ];
  const [changed] = await query<{ some: string[] | null }>(
    on,
    sql`with changed as (
  update ${rows} row
  set ${list(sets, ",\n    ")},
    ${leaseEnds}
  from unnest(${listOf(ids)}::uuid[], ${listOf(tokens)}::uuid[]${parts.values}${
      attempt?.values ?? nothing
    })
    as settled (id, token${parts.columns}${attempt?.columns ?? nothing})
  where row.${id} = settled.id
    and row.claim_token = settled.token
  returning row.${id} as id, row.${error} as error${list([nothing, ...returned])}
)${list([nothing, ...[recorded, also].filter((part) => part !== undefined)])}
select case when count(*) < ${ids.length} then coalesce(array_agg(id::text), '{}') end as some
from changed`,
  );
  return changed?.some ?? ids;
}

// The values of attempts, for tables that record them in full.
function attemptOf<Content, Result>(
  { attempt }: TableDescription<Content, Result>,
  settled: { row: Row<Content>; result?: Result }[],
): { names: Sql[]; set: Sql; columns: Sql; values: Sql } | undefined {
  if (!attempt) return undefined;
  const records = settled.map(({ row, result }) => attempt.of(row, result));
  const names = Object.keys(attempt.columns).map(name);
  const values = Object.entries(attempt.columns).map(([column, type]) =>
    sql`${records.map(({ values }) => values[column] ?? null)}::${name(type)}[]`
  );
  return {
    names,
    set: attempt.set,
    columns: list([nothing, name("tried"), ...names]),
    values: list([
      nothing,
      sql`${listOf(records.map(({ tried }) => `${tried}`))}::boolean[]`,
      ...values,
    ]),
  };
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
