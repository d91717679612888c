// Tables as after a busy day, with hundreds of thousands of finished rows.
import { withClient } from "../support/databases.ts";

export const finishedRows = 300_000;
// A long transaction would keep finished rows in the indexes of every database of the server, and
// other tests count what is read there.
const perTransaction = 10_000;

export function fillOutbox(ownerUrl: string): Promise<void> {
  return fill(
    ownerUrl,
    "outbox_events",
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, status, created_at, published_at)
     select gen_random_uuid(), 'EntitlementGranted', 'done-' || n % 1000 || ':sku',
       jsonb_build_object('user_id', 'done-' || n % 1000, 'source_id', md5(n::text)),
       'PUBLISHED', now() - interval '1 hour' + n * interval '1 microsecond', now()
     from generate_series($1::int, $2::int) as n`,
  );
}

export function fillNotifications(ownerUrl: string): Promise<void> {
  return fill(
    ownerUrl,
    "notifications",
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        status, created_at, sent_at)
     select gen_random_uuid(), gen_random_uuid(), 'done-' || n % 1000, 'done-' || n % 1000 || ':sku',
       n / 1000, 'EntitlementGranted', now(), jsonb_build_object('source_id', md5(n::text)),
       'SENT', now() - interval '1 hour' + n * interval '1 microsecond', now()
     from generate_series($1::int, $2::int) as n`,
  );
}

async function fill(ownerUrl: string, table: string, insert: string): Promise<void> {
  await withClient(ownerUrl, async (owner) => {
    for (let from = 1; from <= finishedRows; from += perTransaction) {
      await owner.query(insert, [from, from + perTransaction - 1]);
    }
    // Else PostgreSQL would vacuum at a time of its own, and a migration in its way waits for a second.
    await owner.query(`vacuum analyze ${table}`);
  });
}
