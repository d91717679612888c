// What one endpoint that is down costs the others, and what the loop costs when none is.
import assert from "node:assert/strict";
import { keepEndpoints } from "../../notification/endpoints/keep_endpoints.ts";
import { pause, Wakeup } from "../../shared/process/signals.ts";
import { until } from "../../tools/servers/wait.ts";
import { eventOf } from "../support/events.ts";
import { collectingLog } from "../support/relays.ts";
import {
  freshWebhooks,
  quickEndpoints,
  receiveMany,
  startReplica,
  type Webhooks,
} from "../support/webhooks.ts";
import { down } from "../support/world.ts";

const batches = { orders: { batchSize: 256 } };

// Sends events to 99 endpoints, and returns how long that takes.
async function sendToAll(webhooks: Webhooks, events: number): Promise<number> {
  const { world } = webhooks;
  const shops = () => world.sent.filter(({ host }) => host !== "dead.example").length;
  const before = shops();
  const from = performance.now();
  const fresh = Array.from({ length: events }, (_, i) => eventOf({ userId: `fresh-${i}` }));
  await webhooks.receive(fresh);
  await until("all are sent", () => shops() === before + 99 * events, 60_000);
  return performance.now() - from;
}

Deno.test("H-104: one dead endpoint of 100 does not slow the others", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const ended = new AbortController();
  for (let i = 1; i < 100; i++) await webhooks.endpoint(`shop-${i}.example`);
  await using replica = startReplica(webhooks, batches);
  await sendToAll(webhooks, 10); // statements are planned, and connections open
  const without = await sendToAll(webhooks, 40);

  const dead = await webhooks.endpoint("dead.example");
  world.rules.set("dead.example", async () => {
    await pause(1_000, ended.signal);
    return down;
  });
  await webhooks.query("update endpoints set user_id = 'nobody' where url not like '%dead%'");
  await receiveMany(webhooks, { users: 5_000, versions: 2 });
  await webhooks.query("update endpoints set user_id = null");
  const whileHanging = await sendToAll(webhooks, 40);
  assert.ok(
    whileHanging < 2 * without + 1_000,
    `${whileHanging} ms while one hangs, ${without} ms without`,
  );
  await until("it is FAILING", async () => (await webhooks.stateOf(dead))?.state === "FAILING");
  replica.look();
  await until("its orders are parked", async () => (await webhooks.counts())["PARKED"] === 10_040);
  const whileParked = await sendToAll(webhooks, 40);
  assert.ok(
    whileParked < 2 * without + 500,
    `${whileParked} ms beside 10,000 parked orders, ${without} ms without`,
  );
  ended.abort();
});

Deno.test("when all endpoints are well, they are looked at with one small query per second", async () => {
  await using webhooks = await freshWebhooks();
  for (let i = 0; i < 20; i++) await webhooks.endpoint(`shop-${i}.example`);
  const stopping = new AbortController();
  const rests: number[] = [];
  const wake = new class extends Wakeup {
    override wait(ms: number) {
      if (rests.push(ms) === 3) stopping.abort();
      return Promise.resolve();
    }
  }();
  let queries = 0;
  webhooks.database.on("acquire", () => queries++);
  const { log, lines } = collectingLog();
  const parts = { database: webhooks.database, wakeOrders: new Wakeup(), wake, log };
  await keepEndpoints(parts, quickEndpoints, stopping.signal);
  assert.deepEqual({ queries, rests, lines }, {
    queries: 3,
    rests: [1_000, 1_000, 1_000],
    lines: [],
  });
});
