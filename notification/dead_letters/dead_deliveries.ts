import type { DeadTable } from "@kenri/shared/operators/dead_rows.ts";
import type { Operation } from "@kenri/shared/operators/operations.ts";
import { recordsOperation } from "@kenri/shared/operators/record_operation.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { deadLayer, type SendBack } from "@kenri/shared/operators/send_back.ts";
import { listOf, sql } from "@kenri/shared/postgres/sql.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { keyOf } from "../key_of.ts";

// The dead letters of the delivery: notifications that are FAILED.

export const notificationDlq: DeadTable = {
  layer: "delivery",
  name: "notification_dlq",
  id: "dlq_id",
  idType: "bigint",
  isDead: "true",
  error: "error_message",
  since: "created_at",
  columns: "event_id, null as attempts, payload_json as payload",
};

export function deadDeliveries(database: Database, wakeDelivery: Wakeup): SendBack {
  return deadLayer(
    database,
    notificationDlq,
    wakeDelivery,
    (ids, operation) => sendBackDeliveries(database, ids, operation),
  );
}

// One statement deletes the dead letter and makes its notification PENDING, so a later failure can
// have a dead letter of its own. A notification already deleted by retention is restored from the
// dead letter.
async function sendBackDeliveries(
  database: Database,
  ids: string[],
  operation: Operation,
): Promise<string[]> {
  const recorded = {
    ...{ kind: "SEND_BACK", layer: "delivery", of: "dead" },
    item: sql`'dlq_id', dlq_id, 'notification_id', notification_id, 'event_id', event_id,
           'from', 'FAILED', 'error', error_message, 'since', created_at`,
  };
  const rows = await query<{ id: string }>(
    database,
    sql`with dead as (
       delete from notification_dlq
       where dlq_id = any(${listOf(ids)}::bigint[])
       returning *
     ), revived as (
       update notifications row
       set status = 'PENDING', attempt_count = 0, next_retry_at = null, last_error = null,
         -- Before migration 0007 a notification could be stored under a key of the old form.
         aggregate_key = coalesce(${keyOf(sql`row.payload_json`)}, row.aggregate_key)
       from dead
       where row.notification_id = dead.notification_id
         and row.status = 'FAILED'
     ), restored as (
       insert into notifications
         (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at,
          payload_json)
       select notification_id, event_id, payload_json->>'user_id', ${keyOf(sql`payload_json`)},
         -- A ticket has one event at most, and no version.
         coalesce((payload_json->>'version')::bigint, 1), payload_json->>'event_type',
         (payload_json->>'occurred_at')::timestamptz, payload_json
       from dead
       where not exists (
         select from notifications row where row.notification_id = dead.notification_id)
       on conflict do nothing
     ), recorded as (
       insert into delivery_attempts (notification_id, outcome, operation_id)
       select notification_id, 'SENT_BACK', ${operation.id}::uuid from dead
     ), ${recordsOperation(operation, recorded)}
     select dlq_id::text as id from dead`,
  );
  return rows.map(({ id }) => id);
}
