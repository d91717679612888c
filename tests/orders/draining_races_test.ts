// What may happen at the same moment as the steps that park orders and return them.
import assert from "node:assert/strict";
import { parkBatch } from "../../notification/endpoints/park.ts";
import { endDraining, unparkBatch } from "../../notification/endpoints/unpark.ts";
import { sending } from "../../notification/orders/send_orders.ts";
import { until } from "../../tools/servers/wait.ts";
import { withClient } from "../support/databases.ts";
import { eventOf, eventsOf } from "../support/events.ts";
import { waitingForLocks } from "../support/locks.ts";
import { collectingLog } from "../support/relays.ts";
import {
  freshWebhooks,
  quickEndpoints,
  quickOrders,
  receiveMany,
  startReplica,
  type Webhooks,
} from "../support/webhooks.ts";
import { down } from "../support/world.ts";

const one = [eventOf()];

// A worker that the test moves by hand.
function workerOf({ database, world }: Webhooks) {
  const { log } = collectingLog();
  const parts = { database, sender: world.sender, wakeEndpoints: () => {}, log };
  return sending(parts, { orders: quickOrders, endpoints: quickEndpoints, sender: undefined });
}

const isWaiting = ({ ownerUrl }: Webhooks) =>
  until("it waits for a lock", async () => await waitingForLocks(ownerUrl) === 1);

// Runs the work while a session has executed a statement; then that is committed or rolled back.
function during<Result>(
  { ownerUrl }: Webhooks,
  statement: string,
  work: () => Promise<Result>,
  end: "commit" | "rollback" = "commit",
): Promise<Result> {
  return withClient(ownerUrl, async (owner) => {
    await owner.query("begin");
    await owner.query(statement);
    try {
      return await work();
    } finally {
      await owner.query(end);
    }
  });
}

Deno.test("draining does not end while an order is being parked, and sees it afterwards", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example", { is_draining: true });
  const { database } = webhooks;
  await during(
    webhooks,
    "select from endpoints for share", // as fan-out and settles do
    async () => assert.equal(await endDraining(database, id), false),
  );
  await webhooks.receive(one);
  assert.deepEqual(await webhooks.counts(), { PARKED: 1 });
  assert.equal(await endDraining(database, id), false);
  assert.equal((await unparkBatch(database, id)).count, 1);
  assert.equal(await endDraining(database, id), true);
  assert.equal((await webhooks.stateOf(id))?.is_draining, false);
});

Deno.test("an event that is fanned out at the moment at which draining ends is not parked", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example", { is_draining: true });
  const received = await during(
    webhooks,
    `update endpoints set is_draining = false where endpoint_id = '${id}'`,
    async () => {
      const receiving = webhooks.receive(one);
      await isWaiting(webhooks);
      return { receiving };
    },
  );
  await received.receiving;
  assert.deepEqual(await webhooks.counts(), { PENDING: 1 });
});

for (const kind of ["retry", "released"] as const) {
  Deno.test(`an order that goes back (${kind}) at the moment at which its endpoint is resumed is not parked`, async () => {
    await using webhooks = await freshWebhooks();
    const id = await webhooks.endpoint("shop.example");
    await webhooks.receive(one);
    const worker = workerOf(webhooks);
    const { rows: [row] } = await worker.claim(1, { tokens: [], lanes: [], fromOldest: false });
    assert.ok(row);
    await webhooks.pause(id);
    const settlement = kind === "retry"
      ? { row, kind, error: "no", delayMs: 0, result: { tried: true, reason: "TIMEOUT" as const } }
      : { row, kind, delayMs: 0 };
    const { settling } = await during(
      webhooks,
      `update endpoints set state = 'ACTIVE', is_draining = false where endpoint_id = '${id}'`,
      async () => {
        const settling = worker.settle([settlement]);
        await isWaiting(webhooks);
        return { settling };
      },
    );
    assert.equal((await settling).size, 1);
    const [order] = await webhooks.orders();
    assert.equal(order?.status, kind === "retry" ? "FAILED" : "PENDING");
  });
}

Deno.test("an order in hand is parked by the statement that puts it back", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example");
  await webhooks.receive(one);
  const worker = workerOf(webhooks);
  const { rows: [row] } = await worker.claim(1, { tokens: [], lanes: [], fromOldest: false });
  assert.ok(row);
  await webhooks.pause(id);
  assert.equal(await parkBatch(webhooks.database, id), 0, "it is in hand");
  await worker.settle([{ row, kind: "released" }]);
  assert.deepEqual(await webhooks.counts(), { PARKED: 1 });
});

Deno.test("nothing is parked once its endpoint is ACTIVE", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example");
  await webhooks.receive(one);
  assert.equal(await parkBatch(webhooks.database, id), 0);
  await webhooks.pause(id);
  const { parking } = await during(
    webhooks,
    `update endpoints set state = 'ACTIVE', is_draining = true where endpoint_id = '${id}'`,
    async () => {
      const parking = parkBatch(webhooks.database, id);
      await isWaiting(webhooks);
      return { parking };
    },
  );
  assert.equal(await parking, 0);
  assert.deepEqual(await webhooks.counts(), { PENDING: 1 });
});

Deno.test("the later versions of a key are parked first", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example");
  await receiveMany(webhooks, { users: 1, versions: 700 });
  await webhooks.pause(id);
  assert.equal(await parkBatch(webhooks.database, id), 500);
  const waiting = await webhooks.query<{ last: number }>(
    "select max(position)::int as last from outbox_orders where status = 'PENDING'",
  );
  assert.equal(waiting[0]?.last, 200);
});

Deno.test("a replica does not return later orders while another one returns the earlier ones", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example");
  await webhooks.pause(id);
  await receiveMany(webhooks, { users: 1, versions: 1_000 });
  await webhooks.resume(id);
  const { unparking } = await during(
    webhooks,
    `update outbox_orders set status = 'PENDING' where position <= 500`,
    async () => {
      const unparking = unparkBatch(webhooks.database, id);
      await isWaiting(webhooks);
      return { unparking };
    },
  );
  assert.equal((await unparking).count, 0);
  assert.equal((await unparkBatch(webhooks.database, id)).count, 500);
});

Deno.test("an earlier version that was stored later returns with the later one", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example");
  await webhooks.pause(id);
  await webhooks.receive([eventOf({ userId: "eve", version: 2 })]);
  await receiveMany(webhooks, { users: 600, versions: 1 });
  await webhooks.receive([eventOf({ userId: "eve", version: 1 })]);
  await webhooks.resume(id);
  await unparkBatch(webhooks.database, id);
  const eves = await webhooks.orders("user_id = 'eve'");
  assert.deepEqual(eves.map(({ status }) => status), ["PENDING", "PENDING"]);
});

Deno.test("an endpoint that drains has a bounded number of orders waiting, and none waits for a parked one", async () => {
  await using webhooks = await freshWebhooks();
  const { database } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  await webhooks.pause(id);
  await receiveMany(webhooks, { users: 3_000, versions: 1 });
  await webhooks.resume(id);
  for (let batch = 0; batch < 6; batch++) await unparkBatch(database, id);
  assert.deepEqual(await webhooks.counts(), { PENDING: 2_000, PARKED: 1_000 });
  // As after a quick pause: one of the orders that wait is behind a parked one of its key.
  await webhooks.query(
    `update outbox_orders set position = 2, aggregate_key = parked.aggregate_key
     from (select aggregate_key from outbox_orders where parked limit 1) as parked
     where id = (select id from outbox_orders where status = 'PENDING' limit 1)`,
  );
  assert.deepEqual(await unparkBatch(database, id), { count: 1, isFull: true });
  assert.deepEqual(await unparkBatch(database, id), { count: 0, isFull: true });
});

Deno.test("an order that is claimed while an earlier one of its key is parked is not sent before it", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  await webhooks.receive(eventsOf({ users: 1, versions: 3 }));
  await webhooks.query("update outbox_orders set status = 'PARKED' where position = 1");
  await webhooks.set(id, { is_draining: true });
  await using _sender = startReplica(webhooks, { keeps: false });
  await until("the second one was claimed and put back", async () => {
    const back = await webhooks.orders(
      "position = 2 and updated_at > created_at and status = 'PENDING'",
    );
    return back.length === 1;
  });
  assert.equal(world.sent.length, 0);
  await using _keeper = startReplica(webhooks, { sends: false });
  await until("all are sent", () => world.sent.length === 3);
  assert.deepEqual(world.sent.map(({ body }) => body.data.version), [1, 2, 3]);
});

Deno.test("several replicas let one probe through at a time, however many look at once", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  await webhooks.set(id, {
    state: "FAILING",
    failing_since: new Date(),
    next_probe_at: new Date(),
  });
  await receiveMany(webhooks, { users: 50, versions: 1 });
  let [underWay, most] = [0, 0];
  world.rules.set("shop.example", async () => {
    most = Math.max(most, ++underWay);
    await new Promise((answer) => setTimeout(answer, 30));
    underWay--;
    return down;
  });
  const endpoints = { probeMinMs: 10, probeMaxMs: 10 };
  await using _one = startReplica(webhooks, { endpoints });
  await using _two = startReplica(webhooks, { endpoints });
  await using _three = startReplica(webhooks, { endpoints });
  await until("there were ten probes", () => world.sent.length >= 10);
  assert.equal(most, 1);
  assert.ok((await webhooks.orders()).every(({ attempts }) => attempts === 0));
});
