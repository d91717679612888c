import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { becomesPending, recordsAttempts, type RepublishCounts } from "./republish.ts";

const lostBatch = 1_000;

// Republishes every event that lies beyond what a later generation has kept of the stream. Another
// relay may republish a whole batch between its search and its locks, so only a search that finds
// nothing is the last one.
export async function republishLost(database: Database, log: Log): Promise<void> {
  let republished = 0;
  for (;;) {
    const counts = await republishLostBatch(database);
    if (counts.found === 0) break;
    republished += counts.republished;
  }
  if (republished > 0) {
    log.warn("{republished} events that the stream has lost are published again", { republished });
  }
}

async function republishLostBatch(database: Database): Promise<RepublishCounts> {
  const [counts] = await query<RepublishCounts>(
    database,
    `with ended as (
       select generation, min(kept_up_to) over (
         order by generation rows between 1 following and unbounded following) as kept_up_to
       from stream_generations
     ), found as materialized (
       select row.event_id, row.stream_generation
       from ended
       join outbox_events row
         on row.status = 'PUBLISHED'
         and row.stream_generation = ended.generation
         and row.stream_seq > ended.kept_up_to
       limit $1
     ), chosen as (
       select row.event_id, row.stream_seq
       from found
       join outbox_events row
         on row.event_id = found.event_id
         and row.status = 'PUBLISHED'
         and row.stream_generation = found.stream_generation
       order by row.event_id
       for update of row
     ), ${recordsAttempts("LOST", "null::uuid")},
     republished as (
       update outbox_events row
       set ${becomesPending},
         last_error = 'lost by the stream'
       from chosen
       where row.event_id = chosen.event_id
       returning row.event_id
     )
     select (select count(*) from found) as found,
       (select count(*) from republished) as republished`,
    [lostBatch],
  );
  return counts ?? { found: 0, republished: 0 };
}
