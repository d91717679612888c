// What operators see of orders and endpoints, each on prepared tables: which rows, how many, in which
// order, and never what an order sends.
import assert from "node:assert/strict";
import { Hono } from "hono";
import type { Handler } from "hono";
import { status } from "../../notification/operators/status.ts";
import { timeline } from "../../notification/operators/timeline.ts";
import { listAttempts } from "../../notification/operators/orders/attempts.ts";
import { deadOrders } from "../../notification/operators/orders/dead_orders.ts";
import { listEndpoints } from "../../notification/operators/orders/endpoints.ts";
import { listOrders } from "../../notification/operators/orders/orders.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { uuidv7 } from "../../shared/process/uuid.ts";
import { ask } from "../../tools/servers/asking.ts";
import { openFresh } from "../support/databases.ts";
import { collectingLog } from "../support/relays.ts";
import {
  insertAttempt,
  insertEndpoint,
  insertLedgerEntry,
  insertOrder,
  sentText,
} from "./order_rows.ts";

// deno-lint-ignore no-explicit-any
async function look(handler: Handler, query = ""): Promise<any> {
  const answer = await new Hono().get("/", handler).request(`/${query}`);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  assert.ok(!text.includes(sentText), "what an order sends is shown");
  assert.ok(!/token=t|\/secret/.test(text), "more of an address than its origin is shown");
  return JSON.parse(text);
}

Deno.test("the status shows orders that are due, what is parked and how the endpoints are", async () => {
  await using place = await openFresh("notification");
  const { ownerUrl, database } = place;
  const active = await insertEndpoint(ownerUrl);
  const failing = await insertEndpoint(ownerUrl, { state: "FAILING" });
  await insertEndpoint(ownerUrl, { state: "DELETED" });
  const late = await insertOrder(ownerUrl, { endpoint_id: active, agoSeconds: 90 });
  await insertOrder(ownerUrl, { endpoint_id: active });
  const retried = await insertOrder(ownerUrl, { status: "FAILED", reason: "TIMEOUT" });
  await ask(
    ownerUrl,
    "update outbox_orders set next_run_at = now() + interval '1 h' where id = $1",
    [retried],
  );
  await insertOrder(ownerUrl, { endpoint_id: failing, status: "PARKED", agoSeconds: 7_200 });
  const paused = await insertEndpoint(ownerUrl, { state: "PAUSED" });
  await insertOrder(ownerUrl, { endpoint_id: paused, status: "PARKED" });
  const link = new NatsLink({ urls: "nats://127.0.0.1:1" }, "notification", collectingLog().log);
  const { orders } = await look(status(database, [], link, []));
  await link.close();
  assert.deepEqual([orders.waiting, orders.parked], [2, 2], "a retry of the future does not wait");
  assert.ok(Math.abs(orders.oldest_waiting_seconds - 90) < 60);
  assert.ok(Math.abs(orders.oldest_parked_seconds - 7_200) < 60);
  assert.deepEqual(
    [orders.oldest[0].order_id, orders.oldest[0].attempt_count],
    [late, 2],
  );
  assert.deepEqual(orders.endpoints, {
    ...{ ACTIVE: 1, PAUSED: 1, FAILING: 1, DISABLED: 0, GONE: 0 },
  });
});

Deno.test("endpoints are listed with what is parked for each, the newest first, in pages", async () => {
  await using place = await openFresh("notification");
  const { ownerUrl, database } = place;
  const paused = await insertEndpoint(ownerUrl, { state: "PAUSED", caller: "bank" });
  const gone = await insertEndpoint(ownerUrl, { state: "GONE" });
  await insertEndpoint(ownerUrl, { state: "DELETED" });
  const active = await insertEndpoint(ownerUrl);
  for (const agoSeconds of [60, 10]) {
    await insertOrder(ownerUrl, { endpoint_id: paused, status: "PARKED", agoSeconds });
  }
  const list = (query = "") => look(listEndpoints(database), query);
  const ids = ({ endpoints }: { endpoints: { endpoint_id: string }[] }) =>
    endpoints.map(({ endpoint_id }) => endpoint_id);
  const first = await list("?limit=2");
  assert.deepEqual(ids(first), [active, gone]);
  const second = await list(`?limit=2&cursor=${first.next_cursor}`);
  assert.deepEqual([ids(second), second.next_cursor], [[paused], undefined]);
  const [one] = second.endpoints;
  assert.deepEqual(
    [one.caller, one.origin, one.state, one.parked],
    ["bank", "https://shop.example", "PAUSED", 2],
  );
  assert.ok(Date.now() - Date.parse(one.oldest_parked_at) > 50_000);
  assert.deepEqual(ids(await list("?state=GONE")), [gone]);
  assert.deepEqual(ids(await list("?caller=bank")), [paused]);
  assert.deepEqual(ids(await list(`?endpoint_id=${active}`)), [active]);
});

Deno.test("an order is found by its id or its key, with its entry in the ledger", async () => {
  await using place = await openFresh("notification");
  const { ownerUrl, database } = place;
  const id = await insertOrder(ownerUrl, {
    ...{ idempotency_key: "shop payout-1", status: "ABORTED", reason: "SERVER_ERROR" },
  });
  await insertLedgerEntry(ownerUrl, id);
  const find = (query: string) => look(listOrders(database), query);
  for (const query of [`?order_id=${id}`, "?idempotency_key=shop+payout-1"]) {
    const { orders: [order], ledger } = await find(query);
    assert.deepEqual(
      [order.order_id, order.to, order.reason_code, order.attempts],
      [id, "https://pay.example", "SERVER_ERROR", 2],
    );
    assert.deepEqual(
      [ledger.status, ledger.http_status, ledger.response, ledger.order_id],
      ["FAILED", 502, "no room", id],
    );
  }
  await ask(ownerUrl, "delete from outbox_orders");
  const { orders, ledger } = await find("?idempotency_key=shop+payout-1");
  assert.deepEqual([orders, ledger.order_id], [[], id], "the ledger outlives the order");
});

Deno.test("the orders of an endpoint are listed by status, and its attempts with the answers", async () => {
  await using place = await openFresh("notification");
  const { ownerUrl, database } = place;
  const [endpoint_id, other] = [await insertEndpoint(ownerUrl), await insertEndpoint(ownerUrl)];
  const parked = await insertOrder(ownerUrl, { endpoint_id, status: "PARKED", agoSeconds: 9 });
  const sent = await insertOrder(ownerUrl, { endpoint_id, status: "SUCCEEDED" });
  const another = await insertOrder(ownerUrl, { endpoint_id: other });
  const ids = ({ orders }: { orders: { order_id: string }[] }) =>
    orders.map(({ order_id }) => order_id);
  const list = (query: string) => look(listOrders(database), `?endpoint_id=${endpoint_id}${query}`);
  assert.deepEqual(ids(await list("")), [sent, parked]);
  assert.deepEqual(ids(await list("&status=PARKED")), [parked]);
  const page = await list("&limit=1");
  assert.deepEqual(ids(await list(`&limit=1&cursor=${page.next_cursor}`)), [parked]);

  await insertAttempt(ownerUrl, { order_id: another, endpoint_id: other });
  await insertAttempt(ownerUrl, { order_id: sent, endpoint_id });
  await insertAttempt(ownerUrl, { order_id: sent, endpoint_id, outcome: "SUCCEEDED" });
  const attempts = (query: string) => look(listAttempts(database), query);
  const seen = ({ attempts }: { attempts: { outcome: string }[] }) =>
    attempts.map(({ outcome }) => outcome);
  assert.deepEqual(seen(await attempts(`?order_id=${sent}`)), ["SUCCEEDED", "RETRIED"]);
  const first = await attempts(`?endpoint_id=${endpoint_id}&limit=1`);
  assert.deepEqual(seen(first), ["SUCCEEDED"]);
  const next = await attempts(`?endpoint_id=${endpoint_id}&cursor=${first.next_cursor}`);
  assert.deepEqual(seen(next), ["RETRIED"]);
  const [one] = next.attempts;
  assert.deepEqual(
    [one.http_status, one.request_headers, one.response_headers, one.response_body],
    [503, { "webhook-id": "w-1" }, { "retry-after": "1" }, "no room"],
  );
});

Deno.test("the timeline of an event has the steps of its webhooks, and an order has its own", async () => {
  await using place = await openFresh("notification");
  const { ownerUrl, database } = place;
  const endpoint_id = await insertEndpoint(ownerUrl);
  const event_id = uuidv7();
  const done = { endpoint_id, event_id, status: "SUCCEEDED" } as const;
  const id = await insertOrder(ownerUrl, done);
  await insertAttempt(ownerUrl, { order_id: id, endpoint_id });
  await insertAttempt(ownerUrl, { order_id: id, endpoint_id, outcome: "SUCCEEDED" });
  await insertOrder(ownerUrl, { endpoint_id }); // of another event
  const plain = await insertOrder(ownerUrl, {
    ...{ idempotency_key: "shop payout-1", status: "ABORTED", reason: "EXPIRED" },
  });
  const find = (query: string) => look(timeline(database), query);
  type Step = { step: string; order_id?: string; to?: string; error?: string };
  const stepsOf = ({ steps }: { steps: Step[] }) => steps.map(({ step }) => step);
  const { events: [event, ...more] } = await find(`?event_id=${event_id}`);
  assert.deepEqual([more, stepsOf(event)], [[], ["ORDERED", "RETRIED", "SUCCEEDED"]]);
  for (const step of event.steps) {
    assert.deepEqual([step.order_id, step.to], [id, "https://shop.example"]);
  }
  const { events: [order] } = await find(`?order_id=${id}`);
  assert.deepEqual(
    [order.event_id, order.order_id, order.status, order.type, stepsOf(order)],
    [event_id, id, "SUCCEEDED", "EntitlementGranted", ["ORDERED", "RETRIED", "SUCCEEDED"]],
  );
  const { events: [byKey] } = await find("?idempotency_key=shop+payout-1");
  assert.deepEqual(
    [byKey.order_id, byKey.event_id, byKey.idempotency_key, byKey.caller, stepsOf(byKey)],
    [plain, null, "payout-1", "shop", ["ORDERED", "ABORTED"]],
  );
  assert.equal(byKey.steps[1].error, "the receiver answered 503");
});

Deno.test("an order of an endpoint that parks its orders is parked when it is sent back, and its expiry ends", async () => {
  await using place = await openFresh("notification");
  const { ownerUrl, database } = place;
  const states = { active: {}, paused: { state: "PAUSED" }, draining: { is_draining: true } };
  const ids: Record<string, string> = {};
  for (const [name, fields] of Object.entries(states)) {
    const endpoint_id = await insertEndpoint(ownerUrl, fields as { state?: "PAUSED" });
    ids[name] = await insertOrder(ownerUrl, { endpoint_id, status: "ABORTED", reason: "EXPIRED" });
  }
  ids["plain"] = await insertOrder(ownerUrl, { status: "ABORTED", reason: "EXPIRED" });
  const withdrawn = await insertOrder(ownerUrl, { status: "ABORTED", reason: "ENDPOINT_DELETED" });
  await ask(ownerUrl, "update outbox_orders set expires_at = now() - interval '1 s'");
  const wanted = [...Object.values(ids), withdrawn];
  const table = deadOrders(database, new Wakeup());
  const found = await table.findByIds(wanted);
  assert.ok(!JSON.stringify(found).includes(sentText), "what an order sends is shown");
  const operation = { id: uuidv7(), who: "kim", reason: "r" };
  const [first] = found;
  assert.ok(first && found.every(({ id }) => id !== withdrawn));
  const { moved } = await table.sendBack([...found, { ...first, id: withdrawn }], operation);
  assert.deepEqual(moved.toSorted(), Object.values(ids).toSorted());
  const rows = await ask<{ id: string; status: string; attempts: number; is_whole: boolean }>(
    ownerUrl,
    `select id, status, attempts,
       operation_id = $1 and expires_at is null and finished_at is null as is_whole
     from outbox_orders
     where status <> 'ABORTED'`,
    [operation.id],
  );
  const statusOf = (name: string) => rows.find(({ id }) => id === ids[name])?.status;
  assert.deepEqual(
    ["active", "plain", "paused", "draining"].map(statusOf),
    ["PENDING", "PENDING", "PARKED", "PARKED"],
  );
  assert.ok(rows.every(({ attempts, is_whole }) => attempts === 0 && is_whole));
});
