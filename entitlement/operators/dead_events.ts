import type { DeadLetter } from "@kenri/shared/operators/dead_letters.ts";
import { deadRows, type DeadTable } from "@kenri/shared/operators/dead_rows.ts";
import { listOf } from "@kenri/shared/queue/leases.ts";
import type { Operation } from "@kenri/shared/operators/operations.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import type { SendBack, SentBack } from "@kenri/shared/operators/send_back.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { renewsKey } from "../outbox.ts";

// The dead letters of the outbox: events that are FAILED.

export function deadEvents(database: Database, wakeRelay: Wakeup): SendBack {
  return {
    layer: "outbox",
    ...deadRows<DeadLetter>(database, deadOutbox),
    sendBack: (dead, operation) => sendBackEvents(database, dead, operation, wakeRelay),
  };
}

const deadOutbox: DeadTable = {
  name: "outbox_events",
  id: "event_id",
  idType: "uuid",
  isDead: "not unfinished and published_at is null", // equivalent to FAILED
  error: "coalesce(last_error, 'unknown')",
  since: "created_at",
  columns: "'outbox' as layer, event_id as id, event_id, attempt_count as attempts, payload",
};

async function sendBackEvents(
  database: Database,
  dead: DeadLetter[],
  { id, who, reason }: Operation,
  wakeRelay: Wakeup,
): Promise<SentBack> {
  const rows = await query<{ event_id: string }>(
    database,
    `with dead as (
       select event_id, last_error
       from outbox_events
       where event_id = any($1::uuid[])
         and status = 'FAILED'
       order by event_id
       for update
     ), recorded as (
       insert into outbox_attempts (event_id, outcome, operation_id)
       select event_id, 'SENT_BACK', $2 from dead
     ), operation as (
       insert into operations (operation_id, kind, layer, who, reason, items)
       select $2, 'SEND_BACK', 'outbox', $3, $4,
         jsonb_agg(jsonb_build_object(
           'event_id', event_id, 'from', 'FAILED', 'error', last_error))
       from dead
       having count(*) > 0
     )
     update outbox_events row
     set status = 'PENDING', attempt_count = 0, next_retry_at = null,
       ${renewsKey}
     from dead
     where row.event_id = dead.event_id
     returning row.event_id`,
    [listOf(dead.map(({ id }) => id)), id, who, reason],
  );
  if (rows.length > 0) wakeRelay.trigger();
  return { moved: rows.map(({ event_id }) => event_id) };
}
