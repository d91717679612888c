import { maxEvents, readAsked, timelineRoute } from "@kenri/shared/operators/timeline.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { findTimelines } from "./event_timelines.ts";
import { timelineBy } from "./looks.ts";

// The timelines of events in this service and of what is reserved, found by event, by reservation, by
// user or by the key of the request.

export const eventsRoute = timelineRoute("entitlement", timelineBy);

export function timeline(database: Database): Handler {
  return async ({ req }) => {
    const asked = readAsked(req.query(), timelineBy);
    switch (asked.by) {
      case "event_id":
        return Response.json({ events: await findTimelines(database, asked.value) });
      case "reservation_id":
        return Response.json({ events: await findTimelines(database, [], [asked.value]) });
      case "user_id": {
        const [events, reserved] = await Promise.all([
          findEventsOfUser(database, asked.value),
          findReservationsOfUser(database, asked.value),
        ]);
        const found = await findTimelines(database, events, reserved);
        return Response.json({ events: found.slice(0, maxEvents) });
      }
      case "idempotency_key": {
        const [[key], { events: known, reservations }] = await Promise.all([
          findKey(database, asked.value),
          findPointsUnder(database, asked.value),
        ]);
        const { event_id, ...stored } = key ?? { event_id: null };
        const events = await findTimelines(
          database,
          [...new Set([...event_id ? [event_id] : [], ...known])],
          reservations,
        );
        return Response.json({
          events,
          ...key ? { key: { ...keyIn(asked.value), ...stored } } : {},
        });
      }
    }
  };
}

interface KeyRow extends Record<string, unknown> {
  event_id: string | null;
}

// The reverse of storedKeyOf.
function keyIn(stored: string): { idempotency_key: string; caller: string } {
  const at = stored.lastIndexOf(" ");
  return { idempotency_key: stored.slice(at + 1), caller: stored.slice(0, Math.max(at, 0)) };
}

// The audit is partitioned by time, and the answer contains the time of the change. A stored
// refusal has no event.
function findKey(database: Database, key: string): Promise<KeyRow[]> {
  return query<KeyRow>(
    database,
    `select ${utc("stored.created_at")} as at,
       ${utc("stored.expires_at")} as expires_at, stored.response_code as status,
       stored.response_body::json as body, audit.audit_id as event_id
     from idempotency_keys stored
     left join entitlement_audit audit
       on audit.occurred_at = (stored.response_body::json->>'updated_at')::timestamptz
       and audit.user_id = stored.response_body::json->>'user_id'
       and audit.stock_keeping_unit = stored.response_body::json->>'stock_keeping_unit'
     where stored.idem_key = $1`,
    [key],
  );
}

// Transactions and reservations keep their keys longer than the answers are stored.
async function findPointsUnder(
  database: Database,
  key: string,
): Promise<{ events: string[]; reservations: string[] }> {
  const { caller, idempotency_key } = keyIn(key);
  const [events, reservations] = await Promise.all([
    query<{ id: string }>(
      database,
      `select id from point_transactions where idempotency_key = $1`,
      [key],
    ),
    query<{ id: string }>(
      database,
      `select id from point_reservations where caller = $1 and idempotency_key = $2`,
      [caller, idempotency_key],
    ),
  ]);
  return { events: events.map(({ id }) => id), reservations: reservations.map(({ id }) => id) };
}

const reservationsOfUser = maxEvents / 2;

// Those that were due a day ago or later, the soonest first.
async function findReservationsOfUser(database: Database, userId: string): Promise<string[]> {
  const rows = await query<{ id: string }>(
    database,
    `select id
     from point_reservations
     where user_id = $1
       and execute_at >= now() - interval '1 day'
     order by execute_at, id
     limit $2`,
    [userId, reservationsOfUser],
  );
  return rows.map(({ id }) => id);
}

// The last event of each of the user's entitlements and all that wait to be published, and the last
// changes of points. Earlier events are found by their ids, which a receiver of the events finds by
// user.
async function findEventsOfUser(database: Database, userId: string): Promise<string[]> {
  const rows = await query<{ event_id: string }>(
    database,
    `with entitlement as materialized (
       select user_id, stock_keeping_unit, updated_at
       from entitlements
       where user_id = $1
       order by updated_at desc
       limit $2
     )
     select audit.audit_id as event_id, audit.occurred_at as created_at
     from entitlement
     join entitlement_audit audit
       on audit.occurred_at = entitlement.updated_at
       and audit.user_id = entitlement.user_id
       and audit.stock_keeping_unit = entitlement.stock_keeping_unit
     union
     select row.event_id, row.created_at
     from entitlement
     join outbox_events row
       on row.unfinished::int = 1
       and row.aggregate_key =
         aggregate_key_of(entitlement.user_id, entitlement.stock_keeping_unit)
     union
     select * from (
       select id, created_at
       from point_transactions
       where user_id = $1
       order by point_transactions.created_at desc, id desc
       limit $2) as points
     order by created_at desc
     limit $2`,
    [userId, maxEvents],
  );
  return rows.map(({ event_id }) => event_id);
}
