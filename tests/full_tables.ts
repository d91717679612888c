// Tables as they are after a busy day: hundreds of thousands of rows that are done.
import { ask } from "./entitlement.ts";

export const finishedRows = 300_000;

export async function fillOutbox(ownerUrl: string): Promise<void> {
  await ask(
    ownerUrl,
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, status, created_at, published_at)
     select gen_random_uuid(), 'EntitlementGranted', 'done-' || n % 1000 || ':sku',
       jsonb_build_object('user_id', 'done-' || n % 1000, 'source_id', md5(n::text)),
       'PUBLISHED', now() - interval '1 hour' + n * interval '1 microsecond', now()
     from generate_series(1, $1) as n`,
    [finishedRows],
  );
}

export async function fillNotifications(ownerUrl: string): Promise<void> {
  await ask(
    ownerUrl,
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        status, created_at, sent_at)
     select gen_random_uuid(), gen_random_uuid(), 'done-' || n % 1000, 'done-' || n % 1000 || ':sku',
       n / 1000, 'EntitlementGranted', now(), jsonb_build_object('source_id', md5(n::text)),
       'SENT', now() - interval '1 hour' + n * interval '1 microsecond', now()
     from generate_series(1, $1) as n`,
    [finishedRows],
  );
}
