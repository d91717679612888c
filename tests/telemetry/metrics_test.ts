// The metrics of a service report what happened, and a scrape costs almost nothing.
import assert from "node:assert/strict";
import { call, grant, list, post, revoke } from "../support/api.ts";
import { freshDatabase, ownDatabase } from "../support/databases.ts";
import { ask, settingsOf, startEntitlement } from "../support/entitlement.ts";
import { samplesOf, scrapeOf, valueOf } from "../support/metrics.ts";
import { insertEvents, manyEvents } from "../support/outbox.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { startSystem } from "../support/system.ts";
import { untilReady } from "../../tools/load/stage.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("each request for a change is counted by its action and its result", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  await grant(url, {}, "key");
  await grant(url, {}, "key");
  await grant(url, {}, "other");
  await grant(url, { user_id: "bob" }, "key");
  await post(url, "grants", {}, "bad");
  await post(url, "grants", "x".repeat(20_000), "large");
  await revoke(url);
  await ask(kenri.database.ownerUrl, "drop table idempotency_keys");
  await revoke(url);
  const scraped = await scrapeOf(kenri);
  const counts = samplesOf(scraped, "entitlement_command_total")
    .filter(({ labels }) => ["grant", "revoke"].includes(labels["action"] ?? ""))
    .map(({ labels, value }) => [`${labels["action"]} ${labels["result"]}`, value]);
  assert.deepEqual(Object.fromEntries(counts), {
    "grant applied": 1,
    "grant replayed": 1,
    "grant state_conflict": 1,
    "grant key_conflict": 1,
    "grant invalid": 2,
    "grant unavailable": 0,
    "grant error": 0,
    "revoke applied": 1,
    "revoke replayed": 0,
    "revoke state_conflict": 0,
    "revoke key_conflict": 0,
    "revoke invalid": 0,
    "revoke unavailable": 0,
    "revoke error": 1,
  });
});

Deno.test("requests are counted by the pattern of their route and never by their path", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  await list(url, "ann");
  await list(url, "bob");
  await list(url, " ");
  await call(`${url}/v1/users/ann/entitlements`, { method: "PURGE" });
  await call(`${url}/ann`);
  await call(`${url}/v1/entitlements/grants/ann`);
  const scraped = await scrapeOf(kenri);
  const name = "kenri_http_request_duration_seconds_count";
  const route = "/v1/users/{user_id}/entitlements";
  assert.equal(valueOf(scraped, name, { route, status: "200" }), 2);
  assert.equal(valueOf(scraped, name, { route, status: "400" }), 1);
  assert.equal(valueOf(scraped, name, { route, status: "405" }), 1);
  assert.equal(valueOf(scraped, name, { route: "none", status: "404" }), 2);
  assert.ok(!JSON.stringify(scraped.samples).includes("ann"));
});

Deno.test("the delays, deliveries and dead letters of both services add up", async () => {
  await using system = await startSystem({
    replicas: 1,
    settings: {
      NOTIFICATION_DELIVERY_MAX_ATTEMPTS: "2",
      NOTIFICATION_DELIVERY_BACKOFF_BASE: "50ms",
      NOTIFICATION_DELIVERY_BACKOFF_MIN: "50ms",
      NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED: "true",
      NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: "bad",
    },
  });
  const [entitlement] = system.replicas.entitlement;
  const [notification] = system.replicas.notification;
  assert.ok(entitlement && notification);
  for (const user_id of ["ann", "bob", "bad"]) await grant(entitlement.url, { user_id });
  await until("all are finished", async () => {
    const [left] = await ask<{ ended: number }>(
      system.notification.ownerUrl,
      "select count(*)::int as ended from notifications where not unfinished",
    );
    return left?.ended === 3;
  });
  await until(
    "it is counted",
    async () =>
      valueOf(await scrapeOf(notification), "notification_delivery_total", { result: "failed" }) ===
        1,
  );
  const published = await scrapeOf(entitlement);
  const delay = "entitlement_outbox_publish_delay_seconds";
  assert.equal(valueOf(published, `${delay}_count`), 3);
  assert.ok(valueOf(published, `${delay}_sum`) as number > 0);
  assert.equal(valueOf(published, `${delay}_bucket`, { le: "10" }), 3);
  const sent = await scrapeOf(notification);
  const counted = samplesOf(sent, "notification_delivery_total")
    .map(({ labels, value }) => [labels["result"], value]);
  assert.deepEqual(Object.fromEntries(counted), { sent: 2, retried: 1, failed: 1 });
  assert.equal(valueOf(sent, "notification_delivery_e2e_delay_seconds_count"), 2);
  assert.equal(valueOf(sent, "notification_delivery_e2e_delay_seconds_bucket", { le: "30" }), 2);
  assert.equal(valueOf(sent, "notification_receive_total", { outcome: "handled" }), 3);
  assert.equal(valueOf(sent, "kenri_worker_claimed_total", { worker: "delivery" }), 4);
  const work = { worker: "delivery", phase: "work" };
  assert.equal(valueOf(sent, "kenri_worker_phase_seconds_count", work), 4);
  assert.equal(valueOf(sent, "kenri_nats_connected"), 1);
  assert.equal(valueOf(sent, "notification_stream_pending_current", { events: "points" }), 0);
});

Deno.test("the backlog and the dead letters are read from the tables", async () => {
  await using system = await startSystem({
    replicas: 1,
    settings: { ENTITLEMENT_OUTBOX_ENABLED: "false" },
  });
  const [entitlement] = system.replicas.entitlement;
  assert.ok(entitlement);
  await insertEvents(system.entitlement.ownerUrl, manyEvents({ keys: 5, versions: 1 }));
  await ask(
    system.entitlement.ownerUrl,
    `update outbox_events
     set created_at = now() - (5 - right(split_part(aggregate_key, ':', 1), 1)::int) * interval '1 hour'`,
  );
  await ask(
    system.entitlement.ownerUrl,
    `update outbox_events set status = 'FAILED' where aggregate_key in ('user-0:sku', 'user-1:sku')`,
  );
  await ask(
    system.entitlement.ownerUrl,
    `insert into outbox_events (event_id, event_type, aggregate_key, payload, status, published_at)
     values (gen_random_uuid(), 't', 'done', '{}', 'PUBLISHED', now())`,
  );
  const scraped = await scrapeOf(entitlement);
  assert.equal(valueOf(scraped, "entitlement_outbox_backlog_current"), 3);
  assert.equal(valueOf(scraped, "entitlement_outbox_failed_current"), 2);
  const age = valueOf(scraped, "entitlement_outbox_backlog_age_seconds") as number;
  assert.ok(Math.abs(age - 3 * 3_600) < 600, `${age}`);

  await ask(
    system.notification.ownerUrl,
    `insert into notification_dlq (notification_id, event_id, payload_json, error_message)
     select gen_random_uuid(), gen_random_uuid(), '{}', 'e' from generate_series(1, 2)`,
  );
  await ask(
    system.notification.ownerUrl,
    `insert into notification_nats_dlq
       (advisory_id, kind, stream, consumer, stream_seq, advised_at, operation_id)
     values ('dead', 'MAX_DELIVERIES', 's', 'c', 1, now(), null),
       ('sent back', 'MAX_DELIVERIES', 's', 'c', 2, now(), gen_random_uuid())`,
  );
  await ask(
    system.notification.ownerUrl,
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, type, occurred_at, payload_json,
        created_at, next_retry_at)
     select gen_random_uuid(), gen_random_uuid(), 'ann', 'ann:sku', 't', now(), '{}',
       now() - hours * interval '1 hour', now() + interval '1 hour'
     from unnest(array[1, 3, 2]) as hours`,
  );
  const notification = system.replicas.notification[0];
  assert.ok(notification);
  const sent = await scrapeOf(notification);
  assert.equal(valueOf(sent, "notification_dlq_current", { layer: "delivery" }), 2);
  assert.equal(valueOf(sent, "notification_dlq_current", { layer: "advisory" }), 1);
  assert.equal(valueOf(sent, "notification_backlog_current"), 3);
  const sentAge = valueOf(sent, "notification_backlog_age_seconds") as number;
  assert.ok(Math.abs(sentAge - 3 * 3_600) < 600, `${sentAge}`);
});

Deno.test("without its database a service still reports its metrics, but not those of the tables", async () => {
  await using database = await ownDatabase();
  await using service = await startService("entitlement", settingsOf(database.serviceUrl));
  await untilReady(service);
  await database.server.kill();
  const away = await scrapeOf(service);
  assert.equal(valueOf(away, "kenri_database_up"), 0);
  assert.equal(valueOf(away, "entitlement_outbox_backlog_current"), undefined);
  assert.equal(valueOf(away, "entitlement_outbox_failed_current"), undefined);
  assert.equal(valueOf(away, "kenri_build_info", { service: "entitlement" }), 1);
  await database.server.start();
  await until(
    "it is seen again",
    async () => valueOf(await scrapeOf(service), "kenri_database_up") === 1,
  );
  assert.equal(valueOf(await scrapeOf(service), "entitlement_outbox_backlog_current"), 0);
});

Deno.test("several scrapes in a short time read the tables once", async () => {
  await using database = await freshDatabase("entitlement");
  await using service = await startService("entitlement", {
    ...settingsOf(database.serviceUrl),
    ENTITLEMENT_OUTBOX_ENABLED: "false",
    ENTITLEMENT_RETENTION_ENABLED: "false",
  });
  for (let i = 0; i < 5; i++) {
    await Promise.all(Array.from({ length: 10 }, () => scrapeOf(service)));
  }
  await service.stop(); // PostgreSQL completes the counters of a session at its end
  const [index] = await ask<{ scans: number }>(
    database.ownerUrl,
    `select idx_scan::int as scans from pg_stat_user_indexes
     where indexrelname = 'outbox_events_failed'`,
  );
  assert.equal(index?.scans, 1);
});

Deno.test("a scrape reads waiting rows and no finished ones, with a plan from when nothing was finished", async () => {
  await using database = await ownDatabase(); // so that no other transaction keeps finished rows in the index
  const settings = {
    ...settingsOf(database.serviceUrl),
    ENTITLEMENT_OUTBOX_ENABLED: "false",
    ENTITLEMENT_RETENTION_ENABLED: "false",
  };
  const rows = 20_000;
  await insertEvents(database.ownerUrl, manyEvents({ keys: rows, versions: 1 }));
  await ask(
    database.ownerUrl,
    "update outbox_events set status = 'PUBLISHED', published_at = now(), stream_seq = 1",
  );
  await ask(database.ownerUrl, "vacuum analyze outbox_events");
  await insertEvents(database.ownerUrl, manyEvents({ keys: 30, versions: 1 }));
  await using service = await startService("entitlement", settings);
  assert.equal(valueOf(await scrapeOf(service), "entitlement_outbox_backlog_current"), 30);
  await service.stop();
  const [index] = await ask<{ read: number }>(
    database.ownerUrl,
    `select sum(idx_tup_read)::int as read from pg_stat_user_indexes
     where relname = 'outbox_events' and indexrelname <> 'outbox_events_pkey'`,
  );
  assert.ok(index && index.read < 1_000, `${index?.read} index entries were read`);
});
