// Both services report what happened to an event, step by step, failures included.
import assert from "node:assert/strict";
import { assertError, call, grant, revoke } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import { untilSent } from "../support/notification.ts";
import { failingSends, look, operate, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

interface Step {
  at: string;
  step: string;
  [more: string]: unknown;
}

const stepsOf = ({ steps }: { steps: Step[] }) => steps.map(({ step }) => step);

Deno.test("an event's timeline leads from its key through both services to the send", async () => {
  await using stack = await startStack();
  const { entitlement, notification, place } = stack;
  await grant(entitlement.url, { user_id: "ann" }, "purchase-1");
  await untilSent(place, 1);
  const byKey = await look(
    entitlement.url,
    "/debug/entitlement/timeline?idempotency_key=purchase-1",
  );
  const [sent] = byKey.events;
  assert.deepEqual(
    [sent.user_id, sent.stock_keeping_unit, sent.version, sent.type, sent.status],
    ["ann", "book", 1, "EntitlementGranted", "PUBLISHED"],
  );
  assert.deepEqual([sent.idempotency_key, byKey.key.status], ["purchase-1", 200]);
  assert.deepEqual(stepsOf(sent), ["CHANGED", "PUBLISHED"]);
  assert.equal(sent.steps[1].stream_seq, 1);

  const byId = `timeline?event_id=${sent.event_id}`;
  const { events: [received] } = await look(notification.url, `/debug/notification/${byId}`);
  assert.deepEqual([received.status, stepsOf(received)], ["SENT", ["RECEIVED", "SENT"]]);
  for (const { steps } of [sent, received]) {
    const times = steps.map(({ at }: Step) => at);
    assert.deepEqual(times, times.toSorted(), "each step is later than the one before");
  }
  assert.deepEqual((await look(entitlement.url, `/debug/entitlement/${byId}`)).events, [sent]);

  const [attempts] = await entitlement.rows<{ count: number }>(
    "select count(*)::int as count from outbox_attempts",
  );
  const [sends] = await ask<{ count: number }>(
    place.ownerUrl,
    "select count(*)::int as count from delivery_attempts",
  );
  assert.deepEqual([attempts?.count, sends?.count], [0, 0], "success costs no row");
});

Deno.test("each failed attempt is a step with its error, and sending back is a step, too", async () => {
  await using stack = await startStack({ notification: failingSends });
  const { entitlement, notification } = stack;
  await grant(entitlement.url, { user_id: "unlucky" });
  const path = "/debug/notification/timeline?user_id=unlucky";
  const gaveUp = async (times: number) => {
    await until(`it gave up ${times} times`, async () => {
      const { events } = await look(notification.url, path);
      return events[0]?.status === "FAILED" &&
        stepsOf(events[0]).filter((step) => step === "GAVE_UP").length === times;
    });
    return (await look(notification.url, path)).events[0];
  };
  const failed = await gaveUp(1);
  assert.deepEqual(stepsOf(failed), ["RECEIVED", "RETRIED", "GAVE_UP"]);
  for (const { error, begun_at, at, worker } of failed.steps.slice(1)) {
    assert.match(error, /Failure injected/);
    assert.ok(begun_at < at && worker, "who tried, and since when");
  }
  const { dead_letters: [dead] } = await look(
    notification.url,
    "/debug/notification/dead-letters?layer=delivery",
  );
  await operate(notification.url, "/operations/notification/dead-letters/send-back", {
    layer: "delivery",
    ids: [dead.id],
  });
  const again = await gaveUp(2);
  assert.deepEqual(stepsOf(again).slice(3), ["SENT_BACK", "RETRIED", "GAVE_UP"]);
  const { who, reason } = again.steps[3];
  assert.deepEqual([who, reason], ["kim", "the channel is back"]);
});

Deno.test("the timelines of a user cover waiting and sent events of both services", async () => {
  await using stack = await startStack();
  const { entitlement, notification, place } = stack;
  await grant(entitlement.url, { user_id: "ann" });
  await revoke(entitlement.url, { user_id: "ann" });
  await grant(entitlement.url, { user_id: "ann", stock_keeping_unit: "film" });
  await grant(entitlement.url, { user_id: "bob" });
  await untilSent(place, 4);
  const own = await look(entitlement.url, "/debug/entitlement/timeline?user_id=ann");
  const seen = (events: { stock_keeping_unit: string; version: number; user_id: string }[]) =>
    events.map(({ user_id, stock_keeping_unit, version }) =>
      `${user_id} ${stock_keeping_unit} ${version}`
    );
  assert.deepEqual(seen(own.events), ["ann film 1", "ann book 2"], "the last of each item");
  const received = await look(notification.url, "/debug/notification/timeline?user_id=ann");
  assert.deepEqual(seen(received.events).sort(), ["ann book 1", "ann book 2", "ann film 1"]);
  const ids = received.events.map(({ event_id }: { event_id: string }) => event_id);
  const all = await look(entitlement.url, `/debug/entitlement/timeline?event_id=${ids}`);
  assert.deepEqual(all.events.map(stepsOf), Array(3).fill(["CHANGED", "PUBLISHED"]));
});

Deno.test("after the outbox has deleted an event, its timeline still shows the change from the audit", async () => {
  await using stack = await startStack();
  const { entitlement, place } = stack;
  await grant(entitlement.url, { user_id: "ann" }, "purchase-1");
  await untilSent(place, 1);
  const [row] = await entitlement.rows<{ event_id: string }>(
    "delete from outbox_events returning event_id",
  );
  const { events: [event] } = await look(
    entitlement.url,
    `/debug/entitlement/timeline?event_id=${row?.event_id}`,
  );
  assert.deepEqual(
    [event.status, event.user_id, event.version, event.idempotency_key, stepsOf(event)],
    ["DELETED", "ann", 1, "purchase-1", ["CHANGED"]],
  );
});

Deno.test("a refused key has an answer and no event, and an invalid request is refused with the reason", async () => {
  await using stack = await startStack();
  const { entitlement, notification } = stack;
  await grant(entitlement.url, {}, "first");
  await grant(entitlement.url, {}, "second");
  const path = "/debug/entitlement/timeline";
  const refused = await look(entitlement.url, `${path}?idempotency_key=second`);
  assert.deepEqual(refused.events, []);
  assert.deepEqual(
    [refused.key.status, refused.key.body.code],
    [409, "ENTITLEMENT_STATE_CONFLICT"],
  );
  const unknown = crypto.randomUUID();
  for (const query of [`event_id=${unknown}`, "user_id=nobody", "idempotency_key=none"]) {
    assert.deepEqual(await look(entitlement.url, `${path}?${query}`), { events: [] });
  }
  const cases: [string, string][] = [
    ["", "exactly one of event_id, user_id, idempotency_key, reservation_id is required"],
    [
      "?user_id=a&event_id=b",
      "exactly one of event_id, user_id, idempotency_key, reservation_id is required",
    ],
    ["?event_id=x", "event_id must be UUIDs, separated by commas"],
    ["?reservation_id=x", "reservation_id must be a UUID"],
    [`?event_id=${Array(101).fill(unknown)}`, "event_id must be at most 100"],
    ["?user_id=%20", "user_id is required"],
  ];
  for (const [query, message] of cases) {
    assertError(await call(`${entitlement.url}${path}${query}`), 400, "BAD_REQUEST", message);
  }
  const other = await call(`${notification.url}/debug/notification/timeline?reservation_id=x`);
  const message = "exactly one of event_id, user_id, idempotency_key, order_id is required";
  assertError(other, 400, "BAD_REQUEST", message);
});

Deno.test("without debug, operators can read and change nothing", async () => {
  await using stack = await startStack({
    entitlement: { ENTITLEMENT_DEBUG_ENABLED: "false" },
    notification: { NOTIFICATION_DEBUG_ENABLED: "false" },
  });
  for (
    const [name, url] of [["entitlement", stack.entitlement.url], [
      "notification",
      stack.notification.url,
    ]]
  ) {
    for (const path of [`debug/${name}/status`, `debug/${name}/timeline?user_id=a`]) {
      assertError(await call(`${url}/${path}`), 404, "NOT_FOUND");
    }
    const operation = await call(`${url}/operations/${name}/dead-letters/send-back`, {
      method: "POST",
    });
    assertError(operation, 404, "NOT_FOUND");
    assert.ok(!/\/(debug|operations)\//.test((await call(`${url}/openapi.json`)).text));
  }
});

Deno.test("the description of the API contains the operators' endpoints", async () => {
  await using stack = await startStack();
  for (const { url } of [stack.entitlement, stack.notification]) {
    const { paths } = await look(url, "/openapi.json");
    const own = Object.keys(paths).filter((path) => /^\/(debug|operations)\//.test(path));
    assert.ok(own.length >= 7, `${own}`);
    const [sendBack] = own.filter((path) => path.endsWith("/send-back"));
    const { schema } = paths[sendBack ?? ""].post.requestBody.content["application/json"];
    assert.deepEqual(schema.required, ["who", "reason"]);
  }
});
