// Who may send an order, and what happens to it while its sends take long, the sender is away, or
// another order could be in the way: W-110.
// Crashes are in the crash matrix.
import assert from "node:assert/strict";
import type { ServiceProcess, Settings } from "../../tools/servers/service_process.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import {
  give,
  ledger,
  order,
  orderRows,
  type Orders,
  senderSettings,
  startOrders,
  untilAllAre,
} from "../support/orders.ts";
import { countLogged } from "../support/logs.ts";
import { startReceiver } from "../support/receiver.ts";

const brief: Settings = {
  NOTIFICATION_ORDERS_LEASE: "1s",
  NOTIFICATION_ORDERS_SEND_TIMEOUT: "20s",
};

Deno.test("W-110: the heartbeat keeps the lease of a send that takes longer, so no other replica sends it", async () => {
  await using stage = await startOrders(brief);
  await using _other = await stage.replica();
  const { receiver } = stage;
  receiver.behave({ delayMs: 4_000 });
  await give(stage, { url: receiver.url });
  await receiver.until(1);
  const leases = new Set<number>();
  await until("it is sent", async () => {
    const rows = await stage.rows<{ lease_until: Date; left: boolean }>(
      "select lease_until, lease_until > now() as left from outbox_orders where status = 'SENDING'",
    );
    for (const { lease_until, left } of rows) {
      assert.ok(left, "its lease has run out");
      leases.add(Number(lease_until));
    }
    return (await orderRows(stage)).every(({ status }) => status === "SUCCEEDED");
  });
  assert.ok(leases.size >= 4, `extended ${leases.size} times`);
  const [row] = await orderRows(stage);
  assert.equal(row?.attempts, 0);
  assert.equal(receiver.received.length, 1);
});

Deno.test("while the sender is away nothing is counted, and everything is sent when it is back", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_ENABLED: "false" });
  const { receiver, sender } = stage;
  for (let i = 0; i < 10; i++) await give(stage, { url: receiver.url });
  await sender.kill();
  for (let i = 0; i < 10; i++) await give(stage, { url: receiver.url }); // judged when it is sent
  await using worker = await stage.replica({ NOTIFICATION_ORDERS_ENABLED: "true" });
  await assertNothingCounted(stage, worker);
  await using _back = await startService("sender", {
    ...senderSettings,
    SENDER_HTTP_PORT: new URL(sender.url).port,
  });
  const rows = await untilAllAre(stage, ["SUCCEEDED"]);
  assert.ok(rows.every(({ attempts }) => attempts === 0));
  assert.equal(receiver.received.length, 20);
  const keys = receiver.received.map(({ headers }) => headers.get("Idempotency-Key"));
  assert.equal(new Set(keys).size, 20);
});

Deno.test("a sender that refuses the token counts nothing, either", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_ENABLED: "false" });
  await give(stage, { url: stage.receiver.url });
  await using worker = await stage.replica({
    NOTIFICATION_ORDERS_ENABLED: "true",
    NOTIFICATION_SENDER_TOKEN: "x".repeat(40),
  });
  await assertNothingCounted(stage, worker);
  assert.equal(stage.receiver.connections, 0);
});

/** Of several tries. */
async function assertNothingCounted(stage: Orders, { log }: ServiceProcess): Promise<void> {
  await until("the log says so", () => countLogged(log, /The sender is unavailable/) > 0);
  const [{ at } = { at: null }] = await stage.rows<{ at: Date | null }>("select now() as at");
  await until("it is tried again", async () => {
    const again = await stage.rows(
      "select from outbox_orders where updated_at > $1::timestamptz + interval '300 ms'",
      [at],
    );
    return again.length > 0;
  });
  for (const { status, attempts, last_error_code } of await orderRows(stage)) {
    assert.ok(["PENDING", "SENDING"].includes(status), status);
    assert.deepEqual([attempts, last_error_code], [0, null]);
  }
  assert.deepEqual(await ledger(stage), []);
}

Deno.test("three replicas that claim a few at a time send each of 300 orders once", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_BATCH_SIZE: "7" });
  await using _second = await stage.replica();
  await using _third = await stage.replica();
  const { receiver } = stage;
  const answers = await Promise.all(
    Array.from({ length: 300 }, (_, i) => order(stage, { url: `${receiver.url}/${i % 5}` })),
  );
  assert.ok(answers.every(({ status }) => status === 202));
  await untilAllAre(stage, ["SUCCEEDED"]);
  const keys = receiver.received.map(({ headers }) => headers.get("Idempotency-Key"));
  assert.equal(keys.length, 300);
  assert.deepEqual(new Set(keys), new Set(answers.map(({ json }) => json.order_id)));
  assert.equal((await ledger(stage)).length, 300);
});

Deno.test("a destination that hangs holds up no other", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_SEND_TIMEOUT: "30s" });
  const { receiver } = stage;
  await using other = await startReceiver();
  receiver.behave("hang");
  for (let i = 0; i < 200; i++) await give(stage, { url: receiver.url });
  for (let i = 0; i < 20; i++) await give(stage, { url: other.url });
  await other.until(20, 10_000);
  assert.ok(receiver.open <= 4, `${receiver.open} at once`);
});

Deno.test("with any time limit that the settings accept, orders are sent", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_SEND_TIMEOUT: "20m" });
  await give(stage, { url: stage.receiver.url });
  await untilAllAre(stage, ["SUCCEEDED"]);
});

Deno.test("a payload that is longer when it is written again stops no other order", async () => {
  await using stage = await startOrders();
  const { receiver: { url } } = stage;
  const numbers = Array(3_200).fill("1e20").join(",");
  const long = `{"adapter":"http","url":${JSON.stringify(url)},"payload":[${numbers}]}`;
  const { status } = await order(stage, long);
  assert.ok([202, 400, 413].includes(status), `${status}`);
  await give(stage, { url, payload: "short" });
  await stage.receiver.until(status === 202 ? 2 : 1);
  await untilAllAre(stage, ["SUCCEEDED"]);
});
