import { z } from "@hono/zod-openapi";
import type { DeadLetter, ErrorCount } from "@kenri/shared/dead_letters";
import { listOf } from "@kenri/shared/leases";
import type { Operation } from "@kenri/shared/operations";
import { type Database, query, utc } from "@kenri/shared/postgres";
import type { SendBack, SentBack } from "@kenri/shared/send_back";
import type { Bell } from "@kenri/shared/signals";

// The dead letters of the outbox: events that are FAILED.

export function deadEvents(database: Database, committed: Bell): SendBack {
  return {
    layer: "outbox",
    idSchema: z.uuid().transform((id) => id.toLowerCase()),
    find: ({ after, error, limit }) =>
      error === undefined
        ? findDead(database, after ?? firstId, limit)
        : findDeadOfError(database, after ?? firstId, limit, error),
    findByIds: (ids) => findDeadByIds(database, ids),
    countByError: (limit) => countByError(database, limit),
    sendBack: (dead, operation) => sendBackEvents(database, dead, operation, committed),
  };
}

const firstId = "00000000-0000-0000-0000-000000000000";

// FAILED, as the index of what is FAILED has it.
const isDead = "not unfinished and published_at is null";

const columns = `'outbox' as layer, event_id as id, event_id,
       coalesce(last_error, 'unknown') as error, attempt_count as attempts, payload,
       ${utc("created_at")} as since,
       extract(epoch from now() - created_at)::float8 as age_seconds`;

function findDead(database: Database, after: string, limit: number): Promise<DeadLetter[]> {
  return query<DeadLetter>(
    database,
    `select ${columns}
     from outbox_events
     where ${isDead}
       and event_id > $1
     order by event_id
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
     from outbox_events
     where ${isDead}
       and event_id > $1
       and coalesce(last_error, 'unknown') = $3
     order by event_id
     limit $2`,
    [after, limit, error],
  );
}

function findDeadByIds(database: Database, ids: string[]): Promise<DeadLetter[]> {
  return query<DeadLetter>(
    database,
    `select ${columns}
     from outbox_events
     where status = 'FAILED'
       and event_id = any($1::uuid[])
     order by event_id`,
    [listOf(ids)],
  );
}

function countByError(database: Database, limit: number): Promise<ErrorCount[]> {
  return query<ErrorCount>(
    database,
    `select error, count(*) as count, ${utc("min(created_at)")} as oldest
     from (
       select coalesce(last_error, 'unknown') as error, created_at
       from outbox_events
       where ${isDead}
       order by event_id
       limit $1
     ) as dead
     group by error
     order by count desc, error`,
    [limit],
  );
}

async function sendBackEvents(
  database: Database,
  dead: DeadLetter[],
  { id, who, reason }: Operation,
  committed: Bell,
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
     set status = 'PENDING', attempt_count = 0, next_retry_at = null
     from dead
     where row.event_id = dead.event_id
     returning row.event_id`,
    [listOf(dead.map(({ id }) => id)), id, who, reason],
  );
  if (rows.length > 0) committed.ring();
  return { moved: rows.map(({ event_id }) => event_id) };
}
