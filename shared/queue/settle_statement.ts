import { type Database, query, type Transaction } from "../postgres/postgres.ts";
import { failsUnless, list, listOf, name, nothing, type Sql, sql } from "../postgres/sql.ts";
import type { LeasedRow } from "./leased_row.ts";
import { columnsOf, type Ending, type TableDescription } from "./leased_table.ts";

// The statement with which leases end, whatever became of the rows. It changes only rows that are
// still leased under the given tokens.

type Row<Content> = LeasedRow<Content>;

// Every settle also ends the lease.
const leaseEnds = sql`locked_by = null, locked_at = null, lease_until = null, claim_token = null`;

interface Parts {
  columns: Sql;
  values: Sql;
  sets: Sql[];
  ending: Pick<Ending, "set" | "returning" | "also"> | undefined;
  outcome?: Sql; // of the attempts to record
  onlyTried?: boolean; // record only what was tried
  withoutAttempt?: boolean; // nothing was tried
  leaseLost?: string | undefined; // the message of the error if not all rows were changed
}

// Usually all rows were changed, and then their ids need not be returned.
export async function settleRows<Content, Result>(
  on: Database | Transaction,
  table: TableDescription<Content, Result>,
  settled: { row: Row<Content>; result?: Result }[],
  parts: Parts,
): Promise<string[]> {
  if (settled.length === 0) return [];
  const ids = settled.map(({ row }) => row.id);
  const tokens = settled.map(({ row }) => row.token);
  const [rows, id, { error }] = [name(table.name), name(table.id), columnsOf(table)];
  const { ending: { set, returning, also } = {}, outcome, onlyTried, withoutAttempt, leaseLost } =
    parts;
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
  const [changed] = await query<{ some?: string[] | null }>(
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
${
      leaseLost === undefined
        ? sql`
select case when count(*) < ${ids.length} then coalesce(array_agg(id::text), '{}') end as some
from changed`
        : failsUnless(ids.length, sql`changed`, leaseLost)
    }`,
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
