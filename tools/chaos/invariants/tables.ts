// The parts of all tables of both databases that the invariants compare.
import { ask } from "../../servers/asking.ts";
import { type OrderTables, readOrderTables, unrestOfOrders } from "./order_tables.ts";
import { leased, microseconds, type PointsTables, readPointsTables } from "./points_tables.ts";

interface Change {
  user_id: string;
  stock_keeping_unit: string;
  version: number;
}

export interface AllTables extends PointsTables, OrderTables {
  entitlements: (Change & { status: string })[];
  answers: { idem_key: string; response_code: number; response_body: string }[];
  events: (Change & {
    event_id: string;
    status: string;
    place: string | null; // the generation and sequence of a published event
    last_error: string | null;
    leased: boolean;
  })[];
  audit: (Change & { action: string; request_id: string; occurred_at: number })[];
  processed: string[]; // event_id
  notifications: (Change & {
    notification_id: string;
    event_id: string;
    status: string;
    has_time: boolean;
    leased: boolean;
  })[];
  deadLetters: { notification_id: string; event_id: string }[];
}

// Of events: points are an item as in the audit.
const itemIn = (payload: string) =>
  `coalesce(${payload}->>'stock_keeping_unit', 'points:' || (${payload}->>'unit'))
     as stock_keeping_unit`;

export async function readAllTables(
  entitlementUrl: string,
  notificationUrl: string,
): Promise<AllTables> {
  const [
    points,
    orders,
    entitlements,
    answers,
    events,
    audit,
    processed,
    notifications,
    deadLetters,
  ] = await Promise.all([
    readPointsTables(entitlementUrl),
    readOrderTables(notificationUrl),
    ask<AllTables["entitlements"][0]>(
      entitlementUrl,
      "select user_id, stock_keeping_unit, version::int, status from entitlements",
    ),
    ask<AllTables["answers"][0]>(
      entitlementUrl,
      "select idem_key, response_code, response_body from idempotency_keys",
    ),
    ask<AllTables["events"][0]>(
      entitlementUrl,
      `select event_id, payload->>'user_id' as user_id, ${itemIn("payload")},
           (payload->>'version')::int as version, status, last_error, ${leased},
           case when published_at is not null then stream_generation || ' ' || stream_seq end
             as place
         from outbox_events`,
    ),
    ask<AllTables["audit"][0]>(
      entitlementUrl,
      `select user_id, stock_keeping_unit, (detail->>'version')::int as version, action,
           request_id, ${microseconds("occurred_at")}
         from entitlement_audit`,
    ),
    ask<{ event_id: string }>(notificationUrl, "select event_id from processed_events"),
    ask<AllTables["notifications"][0]>(
      notificationUrl,
      `select user_id, ${itemIn("payload_json")}, version::int,
           notification_id, event_id, status, sent_at is not null as has_time, ${leased}
         from notifications`,
    ),
    ask<AllTables["deadLetters"][0]>(
      notificationUrl,
      "select notification_id, event_id from notification_dlq",
    ),
  ]);
  return {
    ...{ ...points, ...orders, entitlements, answers, events, audit, notifications, deadLetters },
    processed: processed.map(({ event_id }) => event_id),
  };
}

export interface Unrest {
  reserved: number; // not decided yet
  unpublished: number;
  unreceived: number; // published, but not in the other database
  undelivered: number;
  unsent: number; // orders, and endpoints whose orders wait
}

/** Counts what is unfinished; undefined when nothing is. */
export async function unrest(
  entitlementUrl: string,
  notificationUrl: string,
): Promise<Unrest | undefined> {
  const [own] = await ask<{ reserved: number; unpublished: number }>(
    entitlementUrl,
    `select
       (select count(*)::int from point_reservations where unfinished) as reserved,
       (select count(*)::int from outbox_events where unfinished) as unpublished`,
  );
  const published = await ask<{ event_id: string }>(
    entitlementUrl,
    "select event_id from outbox_events where status = 'PUBLISHED'",
  );
  const [missing] = await ask<Pick<Unrest, "unreceived" | "undelivered" | "unsent">>(
    notificationUrl,
    `select
       (select count(*)::int from notifications where unfinished) as undelivered,
       ${unrestOfOrders},
       (select count(*)::int from unnest($1::uuid[]) as published
         where published not in (select event_id from processed_events)) as unreceived`,
    [published.map(({ event_id }) => event_id)],
  );
  const found = {
    reserved: 0,
    unpublished: 0,
    unreceived: 0,
    undelivered: 0,
    unsent: 0,
    ...own,
    ...missing,
  };
  return Object.values(found).some((count) => count > 0) ? found : undefined;
}
