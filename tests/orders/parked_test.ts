// What happens to the orders of an endpoint that can't have them: they are parked, cost no attempts,
// and return in order.
import assert from "node:assert/strict";
import { until } from "../../tools/servers/wait.ts";
import { freshWebhooks, receiveMany, startReplica, type Webhooks } from "../support/webhooks.ts";
import { down, versionsByUser } from "../support/world.ts";

const allSucceeded = (webhooks: Webhooks, orders: number) =>
  until(
    `${orders} orders have succeeded`,
    async () => (await webhooks.counts())["SUCCEEDED"] === orders,
    120_000,
  );

const isWell = async (webhooks: Webhooks, id: string) => {
  const endpoint = await webhooks.stateOf(id);
  return endpoint?.state === "ACTIVE" && !endpoint.is_draining;
};

Deno.test("W-106: while a destination is down no attempt is used up, and then all is sent", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  world.rules.set("shop.example", () => down);
  await using _replica = startReplica(webhooks);
  const events = await receiveMany(webhooks, { users: 40, versions: 5 });
  await until("it is FAILING", async () => (await webhooks.stateOf(id))?.state === "FAILING");
  await until("all are parked", async () => (await webhooks.counts())["PARKED"] === 200);
  const attempts = async () =>
    (await webhooks.orders()).reduce((sum, row) => sum + row.attempts, 0);
  const usedUp = await attempts();
  const probesFrom = world.sent.length;
  await until("it was probed", () => world.sent.length >= probesFrom + 3);
  assert.equal(await attempts(), usedUp, "probes are not counted");
  assert.ok(usedUp <= 5 + 3, `${usedUp} attempts: those under way when it failed`);

  world.rules.clear();
  await allSucceeded(webhooks, 200);
  await until("it has drained", () => isWell(webhooks, id));
  const received = new Set(world.to("shop.example").map(({ id }) => id));
  assert.deepEqual(received, new Set(events.map(({ eventId }) => eventId)));
  assert.equal(await attempts(), usedUp);
});

for (const state of ["PAUSED", "FAILING", "DISABLED"]) {
  Deno.test(`H-103: 10,000 events for a ${state} endpoint are parked, then arrive in order, once each`, async () => {
    await using webhooks = await freshWebhooks();
    const { world } = webhooks;
    const id = await webhooks.endpoint("shop.example", { at_once: 64 });
    await webhooks.set(id, { state, failing_since: new Date(), next_probe_at: new Date() });
    world.rules.set("shop.example", () => down);
    await using _one = startReplica(webhooks, { orders: { batchSize: 256 } });
    await using _other = startReplica(webhooks, { orders: { batchSize: 256 } });
    await receiveMany(webhooks, { users: 100, versions: 100 });
    await until("it was probed", () => state !== "FAILING" || world.sent.length > 2);
    const { PARKED = 0, PENDING = 0, SENDING = 0 } = await webhooks.counts();
    assert.equal(PARKED + PENDING + SENDING, 10_000);
    assert.ok(PENDING + SENDING <= 1, "only a probe is not parked");
    const probes = world.sent.splice(0).length;
    assert.ok(state === "FAILING" ? probes > 0 : probes === 0, `${probes} probes`);

    world.rules.clear();
    if (state !== "FAILING") await webhooks.resume(id);
    await allSucceeded(webhooks, 10_000);
    await until("it has drained", () => isWell(webhooks, id));
    const sent = world.to("shop.example");
    assert.equal(sent.length, 10_000, "each was sent once");
    for (const [user, versions] of versionsByUser(sent)) {
      assert.deepEqual(versions, Array.from({ length: 100 }, (_, i) => i + 1), user);
    }
    assert.ok((await webhooks.orders()).every(({ attempts }) => attempts === 0));
  });
}

Deno.test("events that arrive while an endpoint drains come after those that were parked", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  await webhooks.pause(id);
  const events = await receiveMany(webhooks, { users: 50, versions: 1 });
  await using _replica = startReplica(webhooks);
  await webhooks.resume(id);
  for (let version = 2; version <= 20; version++) {
    await webhooks.receive(
      events.map((event) => ({ ...event, eventId: crypto.randomUUID(), version })),
    );
  }
  await allSucceeded(webhooks, 1_000);
  for (const [user, versions] of versionsByUser(world.sent)) {
    assert.deepEqual(versions, Array.from({ length: 20 }, (_, i) => i + 1), user);
  }
  await until("it has drained", () => isWell(webhooks, id));
});

Deno.test("an endpoint that is paused and resumed again and again gets all events in order", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  world.rules.set("shop.example", async () => {
    await new Promise((answer) => setTimeout(answer, Math.random() * 5));
    return Math.random() < 0.1 ? 400 : 200; // a refusal is retried, and says that it is up
  });
  const orders = {
    batchSize: 16,
    webhooks: { maxAttempts: 1_000, backoff: { delaysMs: [10] }, sendTimeoutMs: 1_000 },
  };
  await using one = startReplica(webhooks, { orders });
  await using other = startReplica(webhooks, { orders });
  const flipping = (async () => {
    for (let i = 0; i < 60; i++) {
      await webhooks.pause(id);
      if (i % 3 === 0) one.look();
      await new Promise((next) => setTimeout(next, Math.random() * 40));
      await webhooks.resume(id);
      if (i % 2 === 0) other.look();
      await new Promise((next) => setTimeout(next, Math.random() * 40));
    }
  })();
  const events = await receiveMany(webhooks, { users: 30, versions: 1 });
  for (let version = 2; version <= 30; version++) {
    await webhooks.receive(
      events.map((event) => ({ ...event, eventId: crypto.randomUUID(), version })),
    );
  }
  await flipping;
  await allSucceeded(webhooks, 900);
  await until("it has drained", () => isWell(webhooks, id));
  for (const [user, versions] of versionsByUser(world.sent)) {
    const firsts = versions.filter((version, i) => versions.indexOf(version) === i);
    assert.deepEqual(firsts, Array.from({ length: 30 }, (_, i) => i + 1), user);
    assert.deepEqual(versions, versions.toSorted((a, b) => a - b), `${user}: never back`);
  }
  assert.deepEqual(await webhooks.orders("status = 'PARKED'"), []);
});
