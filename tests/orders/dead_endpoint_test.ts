// What one endpoint that is down costs the others, and what the loop costs when none is.
import assert from "node:assert/strict";
import { pause } from "../../shared/process/signals.ts";
import { until } from "../../tools/servers/wait.ts";
import { eventOf } from "../support/events.ts";
import { freshWebhooks, receiveMany, startReplica, type Webhooks } from "../support/webhooks.ts";
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
  const commits = async () => {
    const [row] = await webhooks.query<{ commits: number }>(
      "select xact_commit::int as commits from pg_stat_database where datname = current_database()",
    );
    return row?.commits ?? 0;
  };
  const counted = async (withKeeper: boolean) => {
    const before = await commits();
    const keeper = withKeeper ? startReplica(webhooks, { sends: false }) : undefined;
    await new Promise((over) => setTimeout(over, 3_500)); // what is counted is what happens in it
    await keeper?.stop(); // its counters are complete once its session has ended
    const after = await commits();
    return after - before;
  };
  const without = await counted(false);
  const looks = await counted(true) - without;
  assert.ok(looks >= 3 && looks <= 4 + 3, `${looks} in 3.5 s, with those that open the connection`);
});
