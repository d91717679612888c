import type { DeadTable } from "@kenri/shared/operators/dead_rows.ts";
import type { Operation } from "@kenri/shared/operators/operations.ts";
import { recordsOperation } from "@kenri/shared/operators/record_operation.ts";
import { deadLayer, type SendBack } from "@kenri/shared/operators/send_back.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { listOf, sql } from "@kenri/shared/postgres/sql.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";

// The dead letters of the reservations: those that are FAILED.

export const deadReservation: DeadTable = {
  layer: "reservation",
  name: "point_reservations",
  id: "id",
  idType: "uuid",
  isDead: "not unfinished and done_at is null", // equivalent to FAILED
  error: "coalesce(last_error, 'unknown')",
  since: "updated_at", // of its last claim, because it may have been accepted long before
  columns: `null as event_id, id as reservation_id, attempt_count as attempts,
       jsonb_strip_nulls(jsonb_build_object('kind', kind, 'user_id', user_id, 'unit', unit,
         'point_amount', point_amount, 'stock_keeping_unit', stock_keeping_unit, 'reason', source,
         'source_id', source_id, 'execute_at', execute_at, 'caller', caller,
         'idempotency_key', idempotency_key)) as payload`,
};

export function deadReservations(database: Database, wakeReservations: Wakeup): SendBack {
  return deadLayer(
    database,
    deadReservation,
    wakeReservations,
    (ids, operation) => sendBackReservations(database, ids, operation),
  );
}

// Returns the ids of those that were still FAILED. They are due now: most claims look back only a
// few seconds, and would not find a row that has been due for a week.
async function sendBackReservations(
  database: Database,
  ids: string[],
  operation: Operation,
): Promise<string[]> {
  const recorded = {
    ...{ kind: "SEND_BACK", layer: "reservation", of: "dead" },
    item: sql`'reservation_id', id, 'from', status, 'error', last_error, 'attempts', attempt_count`,
  };
  const rows = await query<{ id: string }>(
    database,
    sql`with dead as (
       select id, status, last_error, attempt_count
       from point_reservations
       where id = any(${listOf(ids)}::uuid[])
         and status = 'FAILED'
       order by id
       for update
     ), attempts as (
       insert into reservation_attempts (id, outcome, operation_id)
       select id, 'SENT_BACK', ${operation.id}::uuid
       from dead
     ), ${recordsOperation(operation, recorded)}
     update point_reservations row
     set status = 'PENDING', attempt_count = 0, next_retry_at = now(), updated_at = now()
     from dead
     where row.id = dead.id
     returning row.id`,
  );
  return rows.map(({ id }) => id);
}
