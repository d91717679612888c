// The queries of operators, each on prepared tables: which rows they return, how many, in which
// order.
import assert from "node:assert/strict";
import { Hono } from "hono";
import type { Handler } from "hono";
import { status as outboxStatus } from "../../entitlement/operators/status.ts";
import { timeline as changes } from "../../entitlement/operators/timeline.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import { status as deliveryStatus } from "../../notification/operators/status.ts";
import { timeline as notifications } from "../../notification/operators/timeline.ts";
import { ask } from "../../tools/servers/asking.ts";
import { openFresh } from "../support/databases.ts";
import { insertEvents, manyEvents } from "../support/outbox.ts";
import { insertEntitlement } from "./rows.ts";
import { collectingLog } from "../support/relays.ts";

Deno.test("the status of the outbox shows the oldest waiting events and the last publication", async () => {
  await using place = await openFresh("entitlement");
  const ids = await insertEvents(place.ownerUrl, manyEvents({ keys: 25, versions: 1 }));
  await ask(
    place.ownerUrl,
    `update outbox_events set status = 'PUBLISHED', published_at = published.at::timestamptz
     from unnest($1::uuid[], $2::text[]) as published (event_id, at)
     where outbox_events.event_id = published.event_id`,
    [ids.slice(0, 2), ["2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"]],
  );
  await ask(
    place.ownerUrl,
    "update outbox_events set created_at = created_at - interval '1 day' where event_id = $1",
    [ids[24]],
  );
  const seen = await look(outboxStatus(place.database, [], () => true));
  assert.deepEqual([seen.waiting, seen.last_published_at], [23, "2026-01-02T00:00:00.000000Z"]);
  assert.deepEqual(
    seen.oldest.map(({ event_id }: { event_id: string }) => event_id),
    [ids[24], ...ids.slice(2, 21)],
  );
  assert.ok(seen.oldest_waiting_seconds >= 2 * 86_400 - 1, `${seen.oldest_waiting_seconds}`);
});

Deno.test("the status of the delivery shows the oldest waiting notifications", async () => {
  await using place = await openFresh("notification");
  await insertNotifications(place.ownerUrl, 25);
  await ask(place.ownerUrl, "update notifications set status = 'FAILED' where version = 24");
  const link = new NatsLink(
    { urls: "nats://127.0.0.1:1" },
    "notification",
    collectingLog().log,
  );
  const seen = await look(deliveryStatus(place.database, [], link, []));
  await link.close();
  assert.equal(seen.waiting, 24);
  const versions = seen.oldest.map(({ version }: { version: number }) => version);
  assert.deepEqual(versions, [25, ...Array.from({ length: 19 }, (_, i) => 23 - i)]);
  assert.ok(Math.abs(seen.oldest_waiting_seconds - 25 * 3_600) < 600);
});

Deno.test("the timeline of a user with many entitlements shows the latest changes", async () => {
  await using place = await openFresh("entitlement");
  await ask(
    place.ownerUrl,
    `with item as (
       select n, gen_random_uuid() as id, now() - n * interval '1 minute' as at
       from generate_series(1, 120) as n
     ), entitlement as (
       insert into entitlements
         (user_id, stock_keeping_unit, status, granted_at, source, source_id, version, updated_at)
       select 'ann', 'item-' || n, 'ACTIVE', at, 'purchase', 'p-1', 1, at from item
     )
     insert into entitlement_audit
       (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
        detail)
     select id, at, 'ann', 'item-' || n, 'GRANT', 'purchase', 'p-1', 'key-' || n, '{"version": 1}'
     from item`,
  );
  // These ids do not contain a time, so the outbox rows have to lead to the audit.
  await ask(
    place.ownerUrl,
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, status, created_at, published_at)
     select audit_id, 'EntitlementGranted', 'ann:' || stock_keeping_unit,
       jsonb_build_object('stock_keeping_unit', stock_keeping_unit), 'PUBLISHED', occurred_at, now()
     from entitlement_audit`,
  );
  const { events } = await look(changes(place.database), "?user_id=ann");
  assert.deepEqual(
    events.map(({ stock_keeping_unit }: { stock_keeping_unit: string }) => stock_keeping_unit),
    Array.from({ length: 100 }, (_, i) => `item-${i + 1}`),
  );
});

Deno.test("the timeline of a user shows the last change of each item and every unpublished one", async () => {
  await using place = await openFresh("entitlement");
  const ids = await insertEvents(place.ownerUrl, manyEvents({ keys: 1, versions: 3 }));
  await insertEntitlement(place.ownerUrl, {
    user_id: "user-0",
    stock_keeping_unit: "sku",
    version: 3,
  });
  await ask(
    place.ownerUrl,
    "update outbox_events set status = 'PUBLISHED', published_at = now() where event_id = $1",
    [ids[0]],
  );
  const { events } = await look(changes(place.database), "?user_id=user-0");
  const shown = events.map(({ event_id }: { event_id: string }) => event_id);
  assert.deepEqual(shown, [ids[2], ids[1]], "the newest first");
});

Deno.test("the timeline of a user with many notifications shows the latest", async () => {
  await using place = await openFresh("notification");
  await insertNotifications(place.ownerUrl, 120);
  const { events } = await look(notifications(place.database), "?user_id=ann");
  const versions = events.map(({ version }: { version: number }) => version);
  assert.deepEqual(versions, Array.from({ length: 100 }, (_, i) => i + 1));
});

Deno.test("an event that JetStream no longer delivers is shown, whether it was received or not", async () => {
  await using place = await openFresh("notification");
  await insertNotifications(place.ownerUrl, 1);
  const [row] = await ask<{ event_id: string }>(
    place.ownerUrl,
    "select event_id from notifications",
  );
  const ids = [row?.event_id ?? "", crypto.randomUUID()];
  await ask(
    place.ownerUrl,
    `insert into notification_nats_dlq
       (advisory_id, kind, stream, consumer, stream_seq, advised_at, reason, message_headers)
     select id, 'MAX_DELIVERIES', 's', 'c', 7, now() - interval '2 hours', 'bad',
       jsonb_build_object('Nats-Msg-Id', jsonb_build_array(id))
     from unnest($1::text[]) as id`,
    [ids],
  );
  const { events } = await look(notifications(place.database), `?event_id=${ids}`);
  const seen = events.map(({ event_id, status, steps }: Record<string, unknown>) => [
    event_id,
    status,
    (steps as { step: string; error?: string }[]).map(({ step, error }) => [step, error]),
  ]);
  assert.deepEqual(seen, [
    [ids[0], "PENDING", [["CAPTURED", "bad"], ["RECEIVED", undefined]]],
    [ids[1], "NOT_RECEIVED", [["CAPTURED", "bad"]]],
  ]);
});

/** A higher version is older. */
async function insertNotifications(ownerUrl: string, count: number): Promise<void> {
  await ask(
    ownerUrl,
    `insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        created_at)
     select gen_random_uuid(), gen_random_uuid(), 'ann', 'ann:book', n, 't', now(), '{}',
       now() - n * interval '1 hour'
     from generate_series(1, $1) as n`,
    [count],
  );
}

// deno-lint-ignore no-explicit-any
async function look(handler: Handler, query = ""): Promise<any> {
  const answer = await new Hono().get("/", handler).request(`/${query}`);
  assert.equal(answer.status, 200);
  return await answer.json();
}
