import { type Database, query } from "../postgres/postgres.ts";
import { name, nothing, type Sql, sql } from "../postgres/sql.ts";
import type { AnyTable } from "./leased_table.ts";

export interface Backlog {
  waiting: number;
  oldest_waiting_seconds: number | null;
}

// What waits in a table: how many rows, counted up to the given number, and for how long the first
// of them has waited.
export async function countBacklog(
  database: Database,
  table: AnyTable,
  countUpTo: number,
): Promise<Backlog> {
  const { order } = table.description;
  const [backlog] = await query<Record<keyof Backlog, number>>(
    database,
    sql`select
       (select count(*) from (select ${inTurn(table)} limit ${countUpTo}) as found) as waiting,
       (select extract(epoch from now() - ${order.turn})::float8 ${inTurn(table)} limit 1)
         as oldest_waiting_seconds`,
  );
  return backlog ?? { waiting: 0, oldest_waiting_seconds: null };
}

// The rows that wait, in the order of the index of claims. Those of the future do not wait yet.
export function inTurn({ description: { name: table, order } }: AnyTable): Sql {
  const isDue = order.isDueTime ? sql`and ${order.turn} <= now()` : nothing;
  return sql`from ${name(table)} where unfinished ${isDue} order by ${order.index}`;
}
