// An order whose worker is killed or frozen in mid-send, and one whose outcome can't be written: W-103
// and W-108. All other crashes are in the crash matrix (W-113).
import assert from "node:assert/strict";
import { Proxy } from "../../tools/chaos/proxy.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import type { ServiceProcess, Settings } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import {
  attemptsOf,
  give,
  ledger,
  orderRows,
  type Orders,
  startOrders,
  untilAllAre,
} from "../support/orders.ts";

const brief: Settings = { NOTIFICATION_ORDERS_LEASE: "1s" };
const slowSends: Settings = { NOTIFICATION_ORDERS_SEND_TIMEOUT: "20s" };

Deno.test("W-103: killed in mid-send, after the lease another replica takes over and succeeds", async () => {
  await using stage = await startOrders({ ...brief, ...slowSends });
  const { id } = await giveSlow(stage, stage);
  await stage.service.kill();
  await using _other = await stage.replica();
  await untilAllAre(stage, ["SUCCEEDED"]);
  await assertSentTwice(stage, id);
});

Deno.test("W-103: frozen in mid-send, and continued after another has succeeded: it changes nothing", async () => {
  await using stage = await startOrders({ ...brief, ...slowSends });
  const { id, answer } = await giveSlow(stage, stage);
  stage.service.signal("SIGSTOP");
  try {
    await using _other = await stage.replica();
    await untilAllAre(stage, ["SUCCEEDED"]);
    const before = [await orderRows(stage), await ledger(stage), await attemptsOf(stage, id)];
    stage.service.signal("SIGCONT");
    answer();
    await untilWorked(stage.service);
    await until(
      "it has nothing in hand",
      async () =>
        /kenri_worker_in_hand_current{worker="orders"} 0/.test(await metricsOf(stage.service)),
    );
    assert.deepEqual(
      [await orderRows(stage), await ledger(stage), await attemptsOf(stage, id)],
      before,
    );
  } finally {
    stage.service.signal("SIGCONT");
  }
  await assertSentTwice(stage, id);
});

Deno.test("W-108: the database is away between response and settle: settled on its return, sent once", async () => {
  await using world = await withLink();
  const { stage, link, service } = world;
  const { answer } = await giveSlow(stage, service);
  link.set({ kind: "cut" });
  answer();
  await untilWorked(service);
  link.set({ kind: "open" });
  await untilAllAre(stage, ["SUCCEEDED"]);
  assert.equal(stage.receiver.received.length, 1);
  const [entry, ...more] = await ledger(stage);
  assert.deepEqual([entry?.status, entry?.http_status, more], ["SUCCEEDED", 200, []]);
});

Deno.test("W-108: killed while the database is away: sent twice with the same id, once in the ledger", async () => {
  await using world = await withLink();
  const { stage, link, service } = world;
  const { id, answer } = await giveSlow(stage, service);
  link.set({ kind: "cut" });
  answer();
  await untilWorked(service);
  await service.kill();
  link.set({ kind: "open" });
  await using _next = await stage.replica({ NOTIFICATION_ORDERS_ENABLED: "true" });
  await untilAllAre(stage, ["SUCCEEDED"]);
  await assertSentTwice(stage, id);
});

/** The receiver answers the first request only when the test says so. */
async function giveSlow(
  { receiver }: Orders,
  to: { url: string },
): Promise<{ id: string; answer(): void }> {
  const gate = Promise.withResolvers<number>();
  receiver.behave(() => gate.promise, 200);
  const id = await give(to, { url: receiver.url });
  await receiver.until(1);
  return { id, answer: () => gate.resolve(200) };
}

async function untilWorked(service: ServiceProcess): Promise<void> {
  await until(
    "it has its answer",
    async () =>
      /kenri_worker_phase_seconds_count{worker="orders",phase="work"} 1/.test(
        await metricsOf(service),
      ),
  );
}

async function assertSentTwice(stage: Orders, id: string): Promise<void> {
  const { received } = stage.receiver;
  assert.deepEqual(received.map(({ headers }) => headers.get("idempotency-key")), [id, id]);
  assert.equal(received[0]?.body, received[1]?.body);
  const [row] = await orderRows(stage);
  assert.deepEqual([row?.status, row?.attempts, row?.locked_by], ["SUCCEEDED", 1, null]);
  const [entry, ...more] = await ledger(stage);
  assert.deepEqual([entry?.status, entry?.order_id, more], ["SUCCEEDED", id, []]);
  const outcomes = (await attemptsOf(stage, id)).map(({ outcome }) => outcome);
  assert.deepEqual(outcomes, ["TAKEN_OVER", "SUCCEEDED"]);
}

interface World extends AsyncDisposable {
  stage: Orders;
  link: Proxy; // between the worker and its database
  service: ServiceProcess; // the worker
}

async function withLink(): Promise<World> {
  await using opened = new AsyncDisposableStack();
  const stage = opened.use(await startOrders({ NOTIFICATION_ORDERS_ENABLED: "false" }));
  const url = new URL(stage.place.serviceUrl);
  const link = opened.use(new Proxy(freePort(), Number(url.port)));
  url.port = `${link.port}`;
  const service = opened.use(
    await stage.replica({
      ...brief,
      NOTIFICATION_ORDERS_ENABLED: "true",
      NOTIFICATION_DATABASE_URL: url.href,
    }),
  );
  const closing = opened.move();
  return { stage, link, service, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

async function metricsOf({ url }: ServiceProcess): Promise<string> {
  return await (await fetch(`${url}/metrics`)).text();
}
