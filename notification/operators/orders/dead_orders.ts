import type { DeadTable } from "@kenri/shared/operators/dead_rows.ts";
import type { Operation } from "@kenri/shared/operators/operations.ts";
import { recordsOperation } from "@kenri/shared/operators/record_operation.ts";
import { deadLayer, type SendBack } from "@kenri/shared/operators/send_back.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { listOf, sql } from "@kenri/shared/postgres/sql.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { orderFacts } from "./orders.ts";

// The dead letters of the orders: those that are ABORTED, except for those that somebody withdrew.

export const deadOrder: DeadTable = {
  layer: "order",
  name: "outbox_orders",
  id: "id",
  idType: "uuid",
  isDead: "is_dead",
  // Messages contain names and addresses, so only the reason is the same for many orders.
  error: "coalesce(last_error_code, 'INTERNAL_ERROR')",
  since: "finished_at",
  columns: `event_id, id as order_id, attempts,
       jsonb_strip_nulls(jsonb_build_object(${orderFacts}, 'message', last_error_msg)) as payload`,
};

export function deadOrders(database: Database, wakeOrders: Wakeup): SendBack {
  return deadLayer(
    database,
    deadOrder,
    wakeOrders,
    (ids, operation) => sendBackOrders(database, ids, operation),
  );
}

// Returns the ids of those that were still dead letters. Those of an endpoint that parks its orders
// wait with the others there. With another operation than the ledger has, the order is sent although
// the ledger says FAILED. Its old expiry would end it again at once. The endpoint is locked like by
// the receiving of an event, so that nothing is parked after an endpoint has sent its last parked
// order.
async function sendBackOrders(
  database: Database,
  ids: string[],
  operation: Operation,
): Promise<string[]> {
  const recorded = {
    ...{ kind: "SEND_BACK", layer: "order", of: "dead" },
    item: sql`'order_id', id, 'from', status, 'error', last_error_code, 'attempts', attempts`,
  };
  const rows = await query<{ id: string }>(
    database,
    sql`with parking as materialized (
       select endpoint_id
       from endpoints
       where endpoint_id in (
           select endpoint_id from outbox_orders where id = any(${listOf(ids)}::uuid[]))
         and (state <> 'ACTIVE' or is_draining)
       order by endpoint_id
       for share
     ), dead as (
       select id, endpoint_id, status, last_error_code, attempts
       from outbox_orders
       where id = any(${listOf(ids)}::uuid[])
         and is_dead
       order by id
       for update
     ), recorded as (
       insert into order_attempts (id, outcome, endpoint_id, operation_id)
       select id, 'SENT_BACK', endpoint_id, ${operation.id}::uuid
       from dead
     ), ${recordsOperation(operation, recorded)}
     update outbox_orders row
     set status = case
         when row.endpoint_id in (select endpoint_id from parking) then 'PARKED'
         else 'PENDING' end,
       attempts = 0, next_run_at = now(), throttled_since = null, finished_at = null,
       expires_at = case when expires_at > now() then expires_at end,
       operation_id = ${operation.id}::uuid, updated_at = now()
     from dead
     where row.id = dead.id
     returning row.id`,
  );
  return rows.map(({ id }) => id);
}
