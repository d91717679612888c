import type { Operation } from "../operators/operations.ts";
import { type Database, query } from "../postgres/postgres.ts";
import { sql } from "../postgres/sql.ts";
import type { OutboxTable } from "./outbox_table.ts";
import { type RepublishCounts, republishes } from "./republish.ts";

export interface PublishedRange {
  from: string;
  to: string;
  limit: number;
}

// Republishes a batch of the events that were published in a range of time, the oldest first. A
// client that repeats the call until the range is complete takes a call that republishes nothing
// for an error. So if somebody else has republished a whole batch after it was found, the next one
// follows here.
export async function republishRange(
  database: Database,
  outbox: OutboxTable,
  range: PublishedRange,
  operation: Operation,
): Promise<RepublishCounts> {
  for (;;) {
    const counts = await republishRangeBatch(database, outbox, range, operation);
    if (counts.republished > 0 || counts.found < range.limit) return counts;
  }
}

async function republishRangeBatch(
  database: Database,
  outbox: OutboxTable,
  { from, to, limit }: PublishedRange,
  operation: Operation,
): Promise<RepublishCounts> {
  const [counts] = await query<RepublishCounts>(
    database,
    sql`with found as materialized (
       select event_id
       from ${outbox.table}
       where status = 'PUBLISHED'
         and published_at >= ${from} and published_at <= ${to}
       order by published_at
       limit ${limit}
     ), chosen as (
       select row.event_id, row.status as state, row.stream_seq
       from found
       join ${outbox.table} row
         on row.event_id = found.event_id
         and row.status = 'PUBLISHED'
         and row.published_at >= ${from} and row.published_at <= ${to}
       order by row.event_id
       for update of row
     ), ${republishes(outbox, "replayed", operation)}
     select (select count(*) from found) as found,
       (select count(*) from republished) as republished`,
  );
  return counts ?? { found: 0, republished: 0 };
}
