// The parts of all tables of both databases that the invariants compare.
import { ask } from "../../servers/asking.ts";

interface Change {
  user_id: string;
  stock_keeping_unit: string;
  version: number;
}

export interface AllTables {
  entitlements: (Change & { status: string })[];
  answers: { idem_key: string; response_code: number; response_body: string }[];
  events: (Change & {
    event_id: string;
    status: string;
    place: string | null; // the generation and sequence of a published event
    last_error: string | null;
    leased: boolean;
  })[];
  audit: (Change & { action: string; request_id: string })[];
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

const leased = "num_nulls(locked_by, locked_at, lease_until, claim_token) < 4 as leased";

export async function readAllTables(
  entitlementUrl: string,
  notificationUrl: string,
): Promise<AllTables> {
  const [entitlements, answers, events, audit, processed, notifications, deadLetters] =
    await Promise.all([
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
        `select event_id, payload->>'user_id' as user_id,
           payload->>'stock_keeping_unit' as stock_keeping_unit,
           (payload->>'version')::int as version, status, last_error, ${leased},
           case when published_at is not null then stream_generation || ' ' || stream_seq end
             as place
         from outbox_events`,
      ),
      ask<AllTables["audit"][0]>(
        entitlementUrl,
        `select user_id, stock_keeping_unit, (detail->>'version')::int as version, action,
           request_id
         from entitlement_audit`,
      ),
      ask<{ event_id: string }>(notificationUrl, "select event_id from processed_events"),
      ask<AllTables["notifications"][0]>(
        notificationUrl,
        `select user_id, payload_json->>'stock_keeping_unit' as stock_keeping_unit, version::int,
           notification_id, event_id, status, sent_at is not null as has_time, ${leased}
         from notifications`,
      ),
      ask<AllTables["deadLetters"][0]>(
        notificationUrl,
        "select notification_id, event_id from notification_dlq",
      ),
    ]);
  return {
    ...{ entitlements, answers, events, audit, notifications, deadLetters },
    processed: processed.map(({ event_id }) => event_id),
  };
}

export interface Unrest {
  unpublished: number;
  unreceived: number; // published, but not in the other database
  undelivered: number;
}

/** Counts what is unfinished; undefined when nothing is. */
export async function unrest(
  entitlementUrl: string,
  notificationUrl: string,
): Promise<Unrest | undefined> {
  const [outbox] = await ask<{ unpublished: number }>(
    entitlementUrl,
    "select count(*)::int as unpublished from outbox_events where unfinished",
  );
  const published = await ask<{ event_id: string }>(
    entitlementUrl,
    "select event_id from outbox_events where status = 'PUBLISHED'",
  );
  const [missing] = await ask<{ unreceived: number; undelivered: number }>(
    notificationUrl,
    `select
       (select count(*)::int from notifications where unfinished) as undelivered,
       (select count(*)::int from unnest($1::uuid[]) as published
         where published not in (select event_id from processed_events)) as unreceived`,
    [published.map(({ event_id }) => event_id)],
  );
  const found = { unpublished: 0, unreceived: 0, undelivered: 0, ...outbox, ...missing };
  return Object.values(found).some((count) => count > 0) ? found : undefined;
}
