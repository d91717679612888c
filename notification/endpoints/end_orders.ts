import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { literal, type Sql, sql } from "@kenri/shared/postgres/sql.ts";
import { writesFailure } from "../orders/ledger.ts";
import { countAborted } from "../orders/metrics.ts";
import type { Reason } from "../orders/reasons.ts";
import { batchSize, unfinishedOf } from "./park.ts";

// Orders that end without being sent: their endpoint was deleted, or they were parked for too long.

// `updated_at` is the time at which an order was parked, which may be long after it was made: a
// replay parks old orders.
export function keptTooLong(keepMs: number): Sql {
  const since = sql`now() - make_interval(secs => ${keepMs}::float8 / 1000)`;
  return sql`row.parked
      and row.created_at < ${since}
      and row.updated_at < ${since}`;
}

export function abortKeptTooLong(
  database: Database,
  endpointId: string,
  keepMs: number,
): Promise<number> {
  return abort(
    database,
    sql`
    select row.id
    from outbox_orders row
    where row.endpoint_id = ${endpointId}
      and ${keptTooLong(keepMs)}
    order by row.created_at, row.position
    limit ${batchSize}
    for update skip locked`,
    "KEPT_TOO_LONG",
    "its endpoint was not available for too long",
  );
}

// An order that a worker has in hand ends when that returns it, or is parked first.
export async function abortOfDeleted(database: Database, endpointId: string): Promise<number> {
  const abortThose = (rows: Sql) =>
    abort(
      database,
      sql`
    select row.id
    from outbox_orders row
    where ${rows}
    limit ${batchSize}
    for update skip locked`,
      "ENDPOINT_DELETED",
      "the endpoint was deleted",
    );
  const waiting = await abortThose(sql`${unfinishedOf(sql`${endpointId}::text`)}
      and row.status <> 'SENDING'`);
  const parked = await abortThose(sql`row.parked
      and row.endpoint_id = ${endpointId}`);
  return waiting + parked;
}

// One statement ends the orders and writes the ledger, so neither exists without the other.
async function abort(
  database: Database,
  chosen: Sql,
  reason: Reason,
  error: string,
): Promise<number> {
  const aborted = await query(
    database,
    sql`with chosen as materialized (${chosen}
), changed as (
  update outbox_orders row
  set status = 'ABORTED',
    last_error_code = ${literal(reason)},
    last_error_msg = ${error},
    next_run_at = null,
    finished_at = now(),
    updated_at = now()
  from chosen
  where row.id = chosen.id
  returning row.id, row.idempotency_key, row.request_digest, row.adapter, row.attempts,
    row.first_sent_at, row.operation_id, row.endpoint_id, row.last_error_code as reason_code,
    row.last_error_msg as error, null::integer as http_status, null::text as response_body,
    false as is_json
), ${writesFailure}, recorded as (
  insert into order_attempts (id, endpoint_id, outcome, error, reason_code)
  select id, endpoint_id, 'GAVE_UP', error, reason_code
  from changed
)
select 1 from changed`,
  );
  if (aborted.length > 0) countAborted(reason, aborted.length);
  return aborted.length;
}

// Removes a deleted endpoint when all of its orders have ended. An event may have been received just
// before the endpoint was deleted, and be committed later, but not as late as this.
export async function removeDeleted(database: Database, endpointId: string): Promise<boolean> {
  const removed = await query(
    database,
    sql`
    delete from endpoints
    where endpoint_id = ${endpointId}
      and state = 'DELETED'
      and state_since < now() - interval '1 minute'
      and not exists (
        select from outbox_orders
        where parked
          and endpoint_id = ${endpointId})
      and not exists (
        select from outbox_orders row
        where ${unfinishedOf(sql`${endpointId}::text`)})
    returning 1`,
  );
  return removed.length > 0;
}
