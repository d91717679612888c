// Reconciliation reports the events that are missing, republishes them, and counts no other event
// as missing.
import assert from "node:assert/strict";
import { assertError, call, grant } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import { countsOf, notificationsOf, untilAllAcked, untilSent } from "../support/notification.ts";
import { insertEvents } from "../support/outbox.ts";
import { collectingLog } from "../support/relays.ts";
import { metricOf } from "../support/metrics.ts";
import { all, changeSome, lose, path, shortWindow, startLoop } from "./reconciled.ts";
import { look, operate, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a missing event is reported, and republished only without dry_run", async () => {
  await using stack = await startStack(shortWindow);
  const { entitlement, place } = stack;
  await changeSome(stack);
  assert.deepEqual(await operate(entitlement.url, path, all), {
    states: { RECEIVED: 4 },
    unreceived: [],
  });
  await lose(stack, "ann:book", 2);
  const dry = await operate(entitlement.url, path, { ...all, dry_run: true });
  assert.deepEqual(dry.states, { RECEIVED: 3, MISSING: 1 });
  const [{ user_id, stock_keeping_unit, version, state, mended }] = dry.unreceived;
  assert.deepEqual(
    [user_id, stock_keeping_unit, version, state, mended],
    ["ann", "book", 2, "MISSING", false],
  );
  assert.equal((await countsOf(place)).sent, 3);

  const done = await operate(entitlement.url, path, all);
  assert.equal(done.unreceived[0].mended, true);
  await untilSent(place, 4);
  assert.deepEqual((await operate(entitlement.url, path, all)).states, { RECEIVED: 4 });
  assert.deepEqual(
    (await look(entitlement.url, "/debug/entitlement/reconciliation")).unreceived,
    [],
  );
  const { operations } = await look(entitlement.url, "/debug/entitlement/operations");
  assert.deepEqual(
    operations.map((
      { kind, who, items }: Record<string, unknown>,
    ) => [kind, who, (items as unknown[]).length]),
    [["MEND", "kim", 1]],
  );
});

Deno.test("an event that the outbox has deleted is written again from the audit, as it was", async () => {
  await using stack = await startStack(shortWindow);
  const { entitlement, place } = stack;
  await changeSome(stack);
  const before = await contentOf(stack);
  const headers =
    "select payload, event_type, aggregate_key, created_at from outbox_events order by event_id";
  const rows = await entitlement.rows(headers);
  await entitlement.rows("delete from outbox_events");
  for (const [key, version] of [["ann:book", 1], ["ann:book", 2]] as const) {
    await lose(stack, key, version);
  }
  const { states } = await operate(entitlement.url, path, all);
  assert.deepEqual(states, { RECEIVED: 2, MISSING: 2 });
  await untilSent(place, 4);
  assert.deepEqual(await contentOf(stack), before);
  assert.deepEqual(await entitlement.rows(headers), rows.slice(0, 2));
});

Deno.test("events that are too old, dead or never published are not republished", async () => {
  await using stack = await startStack(shortWindow);
  const { entitlement, place } = stack;
  await changeSome(stack);
  await entitlement.rows(
    `insert into entitlement_audit
       (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id, detail)
     select gen_random_uuid(), now() - interval '30 days', 'old', 'book', 'GRANT', 's', 'p', 'k', '{"version": 1}'`,
  );
  const [failed = ""] = await insertEvents(entitlement.database.ownerUrl, [
    { key: "bob:film", version: 1, payload: {} },
  ]);
  await entitlement.rows(
    `insert into entitlement_audit
       (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id, detail)
     select $1::uuid, now(), 'bob', 'film', 'GRANT', 's', 'p', 'k', '{"version": 1}'`,
    [failed],
  );
  await lose(stack, "ann:book", 1);
  const [lost] = await entitlement.rows<{ event_id: string }>(
    "select event_id from outbox_events where aggregate_key = 'ann:book' order by created_at limit 1",
  );
  await ask(
    place.ownerUrl,
    `insert into notification_nats_dlq
       (advisory_id, kind, stream, consumer, stream_seq, advised_at, message_headers)
     values ('a', 'MAX_DELIVERIES', 's', 'c', 1, now(), jsonb_build_object('Nats-Msg-Id', jsonb_build_array($1::text)))`,
    [lost?.event_id],
  );
  await until("it has failed", async () => {
    const rows = await entitlement.rows("select from outbox_events where status = 'FAILED'");
    return rows.length === 1;
  });
  const { states, unreceived } = await operate(entitlement.url, path, {
    ...all,
    since: "2020-01-01T00:00:00Z",
  });
  assert.deepEqual(states, { TOO_OLD: 1, DEAD: 2, RECEIVED: 3 });
  assert.ok(unreceived.every(({ mended }: { mended: boolean }) => !mended));
  assert.deepEqual(await entitlement.rows("select from outbox_events where unfinished"), []);
});

Deno.test("an event that waits for redelivery is not missing, and an event before it can be", async () => {
  await using stack = await startStack(shortWindow);
  const { entitlement, place } = stack;
  await changeSome(stack);
  await untilAllAcked(place);
  await ask(
    place.ownerUrl,
    "alter table notifications add constraint not_now check (user_id <> 'cem') not valid",
  );
  await grant(entitlement.url, { user_id: "cem" });
  await grant(entitlement.url, { user_id: "dan" });
  await untilSent(place, 5);
  const states = async () => (await operate(entitlement.url, path, all)).states;
  assert.deepEqual(await states(), { RECEIVED: 5, IN_FLIGHT: 1 });
  await lose(stack, "ann:film", 1);
  assert.deepEqual(await states(), { RECEIVED: 4, MISSING: 1, IN_FLIGHT: 1 });
  await ask(place.ownerUrl, "alter table notifications drop constraint not_now");
  await untilSent(place, 6);
  assert.deepEqual(await states(), { RECEIVED: 6 });
  assert.deepEqual(
    await entitlement.rows("select from outbox_attempts where outcome <> 'MENDED'"),
    [],
  );
});

Deno.test("replicas republish a missing event once, and prove all up to the first event on its way", async () => {
  await using stack = await startStack(shortWindow);
  const { entitlement, place } = stack;
  await changeSome(stack);
  await lose(stack, "ann:book", 2);
  await lose(stack, "ann:film", 1);
  const state = () => look(entitlement.url, "/debug/entitlement/reconciliation");
  const before = await state();
  const stopping = new AbortController();
  const loops = [1, 2].map(() => startLoop(stack, stopping.signal));
  await untilSent(place, 4);
  await until("nothing is missing any more", async () => {
    const { proven_until, unreceived } = await state();
    return unreceived.length === 0 && proven_until > before.proven_until;
  });
  assert.equal(await metricOf("entitlement_reconcile_mended_total"), 2);
  await until("the metric is 0", async () => {
    return await metricOf("entitlement_unreceived_current", { state: "MISSING" }) === 0;
  });

  // An event that can't be published now is on its way, so the proof ends there.
  const { ownerUrl } = entitlement.database;
  await entitlement.service.stop();
  const [pending] = await ask<{ event_id: string; created_at: string }>(
    ownerUrl,
    `update outbox_events set status = 'PENDING', published_at = null
     where aggregate_key = 'bob:book'
     returning event_id, created_at::text`,
  );
  await ask(place.ownerUrl, "delete from processed_events where event_id = $1", [
    pending?.event_id,
  ]);
  await ask(
    ownerUrl,
    "update reconciliation set proven_until = now() - interval '1 day', checked_at = now() - interval '1 day'",
  );
  await until("the proof ends there", async () => {
    const found = await ask(
      ownerUrl,
      "select from reconciliation where proven_until = $1 and checked_at > now() - interval '1 hour'",
      [pending?.created_at],
    );
    return found.length === 1;
  });
  stopping.abort();
  const lines = (await Promise.all(loops)).flat();
  assert.deepEqual(lines, ["error 2 events were not received, 2 of them are published again"]);
});

Deno.test("while no replica answers, no event counts as missing", async () => {
  await using stack = await startStack(shortWindow);
  const { entitlement, notification, place } = stack;
  await changeSome(stack);
  await untilAllAcked(place);
  await notification.stop();
  const answer = await call(`${entitlement.url}${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...all, who: "kim", reason: "r" }),
  });
  const message = "can't ask the notification service: no replica answers";
  assertError(answer, 503, "SERVICE_UNAVAILABLE", message);
  const stopping = new AbortController();
  const collecting = collectingLog();
  const loop = startLoop(stack, stopping.signal, collecting);
  await until("it is logged", () => collecting.lines.some((line) => line.startsWith("warn")));
  stopping.abort();
  assert.deepEqual(await loop, [`warn Reconciliation postponed: ${message}`]);
});

async function contentOf({ place }: Stack): Promise<unknown[]> {
  const rows = await ask(
    place.ownerUrl,
    `select event_id, user_id, aggregate_key, version, type, occurred_at, payload_json
     from notifications
     order by aggregate_key, version`,
  );
  assert.equal(rows.length, (await notificationsOf(place)).length);
  return rows;
}
