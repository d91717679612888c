import type { Operation } from "@kenri/shared/operators/operations.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import {
  becomesPending,
  recordsAttempts,
  recordsOperation,
  type RepublishCounts,
} from "./republish.ts";

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
  range: PublishedRange,
  operation: Operation,
): Promise<RepublishCounts> {
  for (;;) {
    const counts = await republishRangeBatch(database, range, operation);
    if (counts.republished > 0 || counts.found < range.limit) return counts;
  }
}

async function republishRangeBatch(
  database: Database,
  { from, to, limit }: PublishedRange,
  { id, who, reason }: Operation,
): Promise<RepublishCounts> {
  const [counts] = await query<RepublishCounts>(
    database,
    `with found as materialized (
       select event_id
       from outbox_events
       where status = 'PUBLISHED'
         and published_at >= $4 and published_at <= $5
       order by published_at
       limit $6
     ), chosen as (
       select row.event_id, row.stream_seq
       from found
       join outbox_events row
         on row.event_id = found.event_id
         and row.status = 'PUBLISHED'
         and row.published_at >= $4 and row.published_at <= $5
       order by row.event_id
       for update of row
     ), ${recordsAttempts("REPLAYED")},
     ${recordsOperation("REPLAY", "'from', 'PUBLISHED', 'stream_seq', stream_seq")},
     republished as (
       update outbox_events row
       set ${becomesPending}
       from chosen
       where row.event_id = chosen.event_id
       returning row.event_id
     )
     select (select count(*) from found) as found,
       (select count(*) from republished) as republished`,
    [id, who, reason, from, to, limit],
  );
  return counts ?? { found: 0, republished: 0 };
}
