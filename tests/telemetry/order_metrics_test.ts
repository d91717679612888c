// The metrics of orders and endpoints: what came of each send, what waits and what is parked.
import assert from "node:assert/strict";
import { samplesOf, scrapeOf, valueOf } from "../support/metrics.ts";
import { insertEndpoint, insertOrder } from "../operators/order_rows.ts";
import { give, startOrders, untilAllAre } from "../support/orders.ts";

Deno.test("orders are counted by what came of them and why, and retries by the number of the attempt", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_MAX_ATTEMPTS: "3" });
  const { receiver } = stage;
  receiver.behave(503, 400, 200);
  await give(stage, { url: receiver.url });
  await untilAllAre(stage, ["SUCCEEDED"]);
  receiver.behave(410);
  await give(stage, { url: receiver.url });
  await untilAllAre(stage, ["SUCCEEDED", "ABORTED"]);
  const scraped = await scrapeOf(stage.service);
  const counted = samplesOf(scraped, "kenri_orders_total").filter(({ value }) => value > 0)
    .map(({ labels, value }) => [`${labels["outcome"]} ${labels["reason"]}`, value]);
  assert.deepEqual(Object.fromEntries(counted), {
    ...{ "failed SERVER_ERROR": 1, "failed REFUSED": 1, "succeeded ": 1, "aborted GONE": 1 },
  });
  const retries = samplesOf(scraped, "kenri_orders_retry_total")
    .map(({ labels, value }) => [labels["attempt"], value]);
  assert.deepEqual(Object.fromEntries(retries), { 1: 1, 2: 1 });
  assert.ok((valueOf(scraped, "kenri_orders_claimed_total") ?? 0) >= 4, "claimed or handed over");
  assert.equal(
    valueOf(scraped, "kenri_orders_total", {
      ...{ adapter: "webhook", outcome: "aborted", reason: "TIMEOUT" },
    }),
    0,
    "a series begins with 0",
  );
});

Deno.test("what is due, parked and dead, and the endpoints by their state, are read from the tables", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_ENABLED: "false" });
  const { ownerUrl } = stage;
  const paused = await insertEndpoint(ownerUrl, { state: "PAUSED" });
  await insertEndpoint(ownerUrl, { state: "DISABLED" });
  await insertOrder(ownerUrl, { agoSeconds: 600 });
  await insertOrder(ownerUrl, { endpoint_id: paused, status: "PARKED", agoSeconds: 3_600 });
  await insertOrder(ownerUrl, { endpoint_id: paused, status: "PARKED" });
  await insertOrder(ownerUrl, { status: "ABORTED", reason: "TIMEOUT" });
  await insertOrder(ownerUrl, { status: "ABORTED", reason: "ENDPOINT_DELETED" });
  const scraped = await scrapeOf(stage.service);
  const figure = (name: string, labels?: Record<string, string>) => valueOf(scraped, name, labels);
  assert.deepEqual(
    [figure("kenri_orders_due_current"), figure("kenri_orders_parked")],
    [1, 2],
  );
  assert.equal(figure("notification_dlq_current", { layer: "order" }), 1);
  const near = (name: string, seconds: number) =>
    assert.ok(Math.abs((figure(name) ?? 0) - seconds) < 60, `${name} ${figure(name)}`);
  near("kenri_orders_due_age_seconds", 600);
  near("kenri_orders_parked_age_seconds", 3_600);
  const states = samplesOf(scraped, "kenri_endpoints")
    .map(({ labels, value }) => [labels["state"], value]);
  assert.deepEqual(Object.fromEntries(states), {
    ...{ ACTIVE: 0, PAUSED: 1, FAILING: 0, DISABLED: 1, GONE: 0 },
  });
});
