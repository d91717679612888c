import { z } from "@hono/zod-openapi";
import type { DeadLetter, ErrorCount } from "@kenri/shared/dead_letters";
import { listOf } from "@kenri/shared/leases";
import type { Operation } from "@kenri/shared/operations";
import { type Database, query, utc } from "@kenri/shared/postgres";
import type { SendBack, SentBack } from "@kenri/shared/send_back";
import type { Bell } from "@kenri/shared/signals";

// The dead letters of the delivery: notifications that are FAILED.

export function deadDeliveries(database: Database, received: Bell): SendBack {
  return {
    layer: "delivery",
    idSchema: z.string().regex(/^[1-9]\d{0,17}$/),
    find: ({ after, error, limit }) =>
      error === undefined
        ? findDead(database, after ?? "0", limit)
        : findDeadOfError(database, after ?? "0", limit, error),
    findByIds: (ids) => findDeadByIds(database, ids),
    countByError: (limit) => countByError(database, limit),
    sendBack: (dead, operation) => sendBackDeliveries(database, dead, operation, received),
  };
}

const columns = `'delivery' as layer, dlq_id::text as id, event_id, error_message as error,
       null as attempts, payload_json as payload, ${utc("created_at")} as since,
       extract(epoch from now() - created_at)::float8 as age_seconds`;

function findDead(database: Database, after: string, limit: number): Promise<DeadLetter[]> {
  return query<DeadLetter>(
    database,
    `select ${columns}
     from notification_dlq
     where dlq_id > $1
     order by dlq_id
     limit $2`,
    [after, limit],
  );
}

function findDeadOfError(
  database: Database,
  after: string,
  limit: number,
  error: string,
): Promise<DeadLetter[]> {
  return query<DeadLetter>(
    database,
    `select ${columns}
     from notification_dlq
     where dlq_id > $1
       and error_message = $3
     order by dlq_id
     limit $2`,
    [after, limit, error],
  );
}

function findDeadByIds(database: Database, ids: string[]): Promise<DeadLetter[]> {
  return query<DeadLetter>(
    database,
    `select ${columns}
     from notification_dlq
     where dlq_id = any($1::bigint[])
     order by dlq_id`,
    [listOf(ids)],
  );
}

function countByError(database: Database, limit: number): Promise<ErrorCount[]> {
  return query<ErrorCount>(
    database,
    `select error, count(*) as count, ${utc("min(created_at)")} as oldest
     from (
       select error_message as error, created_at
       from notification_dlq
       order by dlq_id
       limit $1
     ) as dead
     group by error
     order by count desc, error`,
    [limit],
  );
}

// The dead letter goes in the statement that makes its notification PENDING, so a later failure has
// room for its own. A notification that was deleted for its age comes back from the dead letter.
async function sendBackDeliveries(
  database: Database,
  dead: DeadLetter[],
  { id, who, reason }: Operation,
  received: Bell,
): Promise<SentBack> {
  const rows = await query<{ id: string }>(
    database,
    `with dead as (
       delete from notification_dlq
       where dlq_id = any($1::bigint[])
       returning *
     ), revived as (
       update notifications row
       set status = 'PENDING', attempt_count = 0, next_retry_at = null, last_error = null
       from dead
       where row.notification_id = dead.notification_id
         and row.status = 'FAILED'
     ), restored as (
       insert into notifications
         (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at,
          payload_json)
       select notification_id, event_id, payload_json->>'user_id',
         (payload_json->>'user_id') || ':' || (payload_json->>'stock_keeping_unit'),
         (payload_json->>'version')::bigint, payload_json->>'event_type',
         (payload_json->>'occurred_at')::timestamptz, payload_json
       from dead
       where not exists (
         select from notifications row where row.notification_id = dead.notification_id)
       on conflict do nothing
     ), recorded as (
       insert into delivery_attempts (notification_id, outcome, operation_id)
       select notification_id, 'SENT_BACK', $2 from dead
     ), operation as (
       insert into operations (operation_id, kind, layer, who, reason, items)
       select $2, 'SEND_BACK', 'delivery', $3, $4,
         jsonb_agg(jsonb_build_object(
           'dlq_id', dlq_id, 'notification_id', notification_id, 'event_id', event_id,
           'from', 'FAILED', 'error', error_message, 'since', created_at))
       from dead
       having count(*) > 0
     )
     select dlq_id::text as id from dead`,
    [listOf(dead.map(({ id }) => id)), id, who, reason],
  );
  if (rows.length > 0) received.ring();
  return { moved: rows.map(({ id }) => id) };
}
