import { type Database, query } from "../postgres/postgres.ts";
import { sql } from "../postgres/sql.ts";
import type { Log } from "../process/log.ts";
import type { OutboxTable } from "./outbox_table.ts";
import { type RepublishCounts, republishes } from "./republish.ts";

const lostBatch = 1_000;

// Republishes every event that lies beyond what a later generation has kept of the stream. Another
// relay may republish a whole batch between its search and its locks, so only a search that finds
// nothing is the last one.
export async function republishLost(
  database: Database,
  outbox: OutboxTable,
  log: Log,
): Promise<void> {
  let republished = 0;
  for (;;) {
    const counts = await republishLostBatch(database, outbox);
    if (counts.found === 0) break;
    republished += counts.republished;
  }
  if (republished > 0) {
    log.warn("{republished} events that the stream has lost are published again", { republished });
  }
}

async function republishLostBatch(
  database: Database,
  outbox: OutboxTable,
): Promise<RepublishCounts> {
  const [counts] = await query<RepublishCounts>(
    database,
    sql`with ended as (
       select generation, min(kept_up_to) over (
         order by generation rows between 1 following and unbounded following) as kept_up_to
       from stream_generations
     ), found as materialized (
       select row.event_id, row.stream_generation
       from ended
       join ${outbox.table} row
         on row.status = 'PUBLISHED'
         and row.stream_generation = ended.generation
         and row.stream_seq > ended.kept_up_to
       limit ${lostBatch}
     ), chosen as (
       select row.event_id, row.status as state, row.stream_seq
       from found
       join ${outbox.table} row
         on row.event_id = found.event_id
         and row.status = 'PUBLISHED'
         and row.stream_generation = found.stream_generation
       order by row.event_id
       for update of row
     ), ${republishes(outbox, "lost")}
     select (select count(*) from found) as found,
       (select count(*) from republished) as republished`,
  );
  return counts ?? { found: 0, republished: 0 };
}
