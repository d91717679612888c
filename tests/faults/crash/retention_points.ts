// A crash between the batches of the retention.
import { grant } from "../../../tools/load/change_request.ts";
import { ask } from "../../support/entitlement.ts";
import { statement } from "./fault_point.ts";
import type { FlowPoint, Stage } from "./stage.ts";

const sent = {
  ...{ "stored answers": 1, audit: 1, "outbox PUBLISHED": 1, "in the stream": 1 },
  ...{ processed: 1, "notifications SENT": 1 },
};

export const retentionPoints: FlowPoint[] = [
  {
    dies: "when half of the old events are deleted",
    of: "entitlement",
    at: statement("before", "delete from outbox_events", 2),
    ownSettings: { ENTITLEMENT_OUTBOX_ENABLED: "false" },
    before: async (stage) => {
      await stage.commit(grant());
      await addOldRows(stage, 1_100);
    },
    leaves: { "stored answers": 1, audit: 1, "outbox PENDING": 1, "outbox PUBLISHED": 100 },
    next: "Retention deletes the other rows after the next start",
    ends: sent,
    sends: 1,
    seen: "Nothing",
  },
  {
    dies: "when half of the old notifications are deleted",
    of: "notification",
    at: statement("before", "delete from notifications", 2),
    before: async (stage) => {
      await stage.commit(grant());
      await addOldNotifications(stage, 1_100);
    },
    leaves: { "stored answers": 1, audit: 1, "outbox PENDING": 1, "notifications SENT": 100 },
    afterwards: (stage) => stage.publish(),
    next: "Retention deletes the other rows after the next start",
    ends: sent,
    sends: 1,
    seen: "Nothing",
  },
];

/** Old rows: expired answers, and events that were published two days ago. */
async function addOldRows({ place }: Stage, count: number): Promise<void> {
  await ask(
    place.owners.entitlement,
    `with expired as (
       insert into idempotency_keys
         (idem_key, request_hash, response_code, response_body, created_at, expires_at)
       select 'old-' || n, '', 409, '{}', now() - interval '2 days', now() - interval '1 day'
       from generate_series(1, $1) as n
     )
     insert into outbox_events
       (event_id, event_type, aggregate_key, payload, status, created_at, published_at)
     select gen_random_uuid(), 'EntitlementGranted', 'old-' || n, '{}', 'PUBLISHED',
       now() - interval '2 days', now() - interval '2 days'
     from generate_series(1, $1) as n`,
    [count],
  );
}

/** Old rows: events that were received, and notifications that were sent, long ago. */
async function addOldNotifications({ place }: Stage, count: number): Promise<void> {
  await ask(
    place.owners.notification,
    `with event as (
       insert into processed_events (event_id, processed_at)
       select gen_random_uuid(), now() - interval '31 days' from generate_series(1, $1)
       returning event_id
     )
     insert into notifications
       (notification_id, event_id, user_id, aggregate_key, type, occurred_at, payload_json, status,
        created_at, sent_at)
     select gen_random_uuid(), event_id, 'old', event_id, 'EntitlementGranted', now(), '{}', 'SENT',
       now() - interval '31 days', now() - interval '31 days'
     from event`,
    [count],
  );
}
