import { type Database, query } from "../postgres/postgres.ts";
import type { AnyTable } from "./leased_table.ts";

export interface Backlog {
  waiting: number;
  oldest_waiting_seconds: number | null;
}

// What waits in a table: how many rows, counted up to the given number ($1), and the age of the
// oldest. Both read only the index of unfinished rows. The owner may ask for columns of its own.
export async function countBacklog<Own>(
  database: Database,
  { description: { name, order } }: AnyTable,
  countUpTo: number,
  ownColumns: string[] = [],
): Promise<Backlog & Own> {
  const columns = [
    `(select count(*) from (
          select from ${name} where unfinished order by ${order.index.text} limit $1) as found) as waiting`,
    `(select extract(epoch from now() - created_at)::float8
        from ${name} where unfinished order by ${order.index.text} limit 1) as oldest_waiting_seconds`,
    ...ownColumns,
  ];
  const [backlog] = await query<Record<string, unknown>>(
    database,
    `select ${columns.join(",\n       ")}`,
    [countUpTo],
  );
  return backlog as unknown as Backlog & Own;
}
