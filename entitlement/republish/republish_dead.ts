import type { Operation } from "@kenri/shared/operators/operations.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { listOf } from "@kenri/shared/queue/leased_row.ts";
import { becomesPending, recordsAttempts, recordsOperation } from "./republish.ts";

// Republishes dead letters of the outbox, and returns the ids of those that were still FAILED.
export async function republishDead(
  database: Database,
  ids: string[],
  { id, who, reason }: Operation,
): Promise<string[]> {
  const rows = await query<{ event_id: string }>(
    database,
    `with chosen as (
       select event_id, stream_seq, last_error
       from outbox_events
       where event_id = any($4::uuid[])
         and status = 'FAILED'
       order by event_id
       for update
     ), ${recordsAttempts("SENT_BACK")},
     ${recordsOperation("SEND_BACK", "'from', 'FAILED', 'error', last_error")}
     update outbox_events row
     set ${becomesPending}
     from chosen
     where row.event_id = chosen.event_id
     returning row.event_id`,
    [id, who, reason, listOf(ids)],
  );
  return rows.map(({ event_id }) => event_id);
}
