import type { Operation } from "../operators/operations.ts";
import { type Database, query } from "../postgres/postgres.ts";
import { listOf, sql } from "../postgres/sql.ts";
import type { OutboxTable } from "./outbox_table.ts";
import { republishes } from "./republish.ts";

// Republishes dead letters of the outbox, and returns the ids of those that were still FAILED.
export async function republishDead(
  database: Database,
  outbox: OutboxTable,
  ids: string[],
  operation: Operation,
): Promise<string[]> {
  const rows = await query<{ event_id: string }>(
    database,
    sql`with chosen as (
       select event_id, status as state, stream_seq, last_error
       from ${outbox.table}
       where event_id = any(${listOf(ids)}::uuid[])
         and status = 'FAILED'
       order by event_id
       for update
     ), ${republishes(outbox, "dead", operation)}
     select event_id from republished`,
  );
  return rows.map(({ event_id }) => event_id);
}
