// What a claim of notifications reads stays small, however many were sent before.
import assert from "node:assert/strict";
import { notifications } from "../../notification/deliveries.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { freshDatabase } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a claim does not read what was already sent to the same user", async () => {
  await using place = await freshDatabase("notification");
  await ask(
    place.ownerUrl,
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        status, sent_at)
     select id, id, 'ann', 'ann:book', version, 'EntitlementGranted', now(), '{}',
       case when version > 5000 then 'PENDING' else 'SENT' end,
       case when version > 5000 then null else now() end
     from (select gen_random_uuid() as id, version from generate_series(1, 5003) as version) as rows`,
  );
  await ask(place.ownerUrl, "vacuum analyze notifications");
  await ask(place.ownerUrl, "select pg_stat_reset()");
  const database = openDatabase(place.serviceUrl, "test");
  const lease = { worker: "test", leaseMs: 60_000 };
  const claimed = await notifications.claim(database, lease, 10);
  await database.end();
  assert.equal(claimed.length, 3);
  let read = 0;
  await until("the counters of the ended session are there", async () => {
    const [entries] = await ask<{ read: number }>(
      place.ownerUrl,
      `select (
           select sum(idx_tup_read)::int from pg_stat_user_indexes where relname = 'notifications')
         + (select seq_tup_read::int from pg_stat_user_tables where relname = 'notifications')
         as read`,
    );
    read = entries?.read ?? 0;
    return read > 0;
  });
  assert.ok(read < 100, `${read} entries were read`);
});
