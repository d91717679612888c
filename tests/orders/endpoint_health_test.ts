// How an endpoint fails, is probed, and ends.
import assert from "node:assert/strict";
import { abortKeptTooLong, removeDeleted } from "../../notification/endpoints/end_orders.ts";
import { noteOutcomes } from "../../notification/endpoints/health.ts";
import { endLostProbe, letProbeThrough } from "../../notification/endpoints/probe.ts";
import type { Reason } from "../../notification/orders/reasons.ts";
import { until } from "../../tools/servers/wait.ts";
import { eventOf } from "../support/events.ts";
import {
  freshWebhooks,
  quickEndpoints,
  receiveMany,
  startReplica,
  type Webhooks,
} from "../support/webhooks.ts";
import { down } from "../support/world.ts";

const failing = () => ({
  state: "FAILING",
  failures: 5,
  failing_since: new Date(),
  next_probe_at: new Date(),
});

const untilState = (webhooks: Webhooks, id: string, state: string) =>
  until(`it is ${state}`, async () => (await webhooks.stateOf(id))?.state === state);

const allSucceeded = (webhooks: Webhooks, orders: number) =>
  until("all are sent", async () => (await webhooks.counts())["SUCCEEDED"] === orders);

Deno.test("W-111: 410 ends an endpoint at once, and its orders are kept until it is resumed", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example", { ordering: "endpoint" });
  world.rules.set("shop.example", () => 410);
  await using replica = startReplica(webhooks);
  await receiveMany(webhooks, { users: 20, versions: 1 });
  await untilState(webhooks, id, "GONE");
  await until("all others are parked", async () => (await webhooks.counts())["PARKED"] === 19);
  assert.equal(world.sent.length, 1);
  const [gone] = await webhooks.orders("status = 'ABORTED'");
  assert.equal(gone?.last_error_code, "GONE");
  world.rules.clear();
  await webhooks.resume(id);
  replica.look();
  await allSucceeded(webhooks, 19);
});

Deno.test("a success in between ends a row of failures, whoever claimed it before the first", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example");
  const note = (...reasons: (Reason | undefined)[]) =>
    noteOutcomes(
      webhooks.database,
      quickEndpoints,
      reasons.map((reason) => ({
        endpointId: id,
        orderId: crypto.randomUUID(),
        reason,
        failuresBefore: 0,
      })),
    );
  await note("TIMEOUT", "TIMEOUT", "TIMEOUT", "TIMEOUT");
  assert.equal((await webhooks.stateOf(id))?.failures, 4);
  await note(undefined);
  assert.equal((await webhooks.stateOf(id))?.failures, 0);
  await note("TIMEOUT", "TIMEOUT", "TIMEOUT", "TIMEOUT");
  assert.deepEqual(await note("TIMEOUT"), { changed: true });
  assert.equal((await webhooks.stateOf(id))?.state, "FAILING");
});

Deno.test("a success of an endpoint without failures costs no statement", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example");
  const of = async () =>
    (await webhooks.query<{ version: string }>("select xmin::text as version from endpoints"))[0];
  const before = await of();
  const success = { endpointId: id, orderId: id, reason: undefined, failuresBefore: 0 };
  await noteOutcomes(webhooks.database, quickEndpoints, [success, success]);
  assert.deepEqual(await of(), before);
});

Deno.test("a probe that is refused shows that the endpoint is up, and the refusal is counted then", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  await webhooks.set(id, failing());
  const bad = eventOf({ userId: "bad" });
  await webhooks.receive([bad]);
  await receiveMany(webhooks, { users: 20, versions: 1 });
  world.rules.set("shop.example", ({ id }) => id === bad.eventId ? 400 : 200);
  await using _replica = startReplica(webhooks);
  await allSucceeded(webhooks, 20);
  assert.equal((await webhooks.stateOf(id))?.state, "ACTIVE");
  await until("the refusal counts", async () => {
    const [order] = await webhooks.orders(`event_id = '${bad.eventId}'`);
    return (order?.attempts ?? 0) > 0;
  });
});

Deno.test("a probe whose worker died in mid-send is taken over, and no other one is sent meanwhile", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  await webhooks.set(id, failing());
  await receiveMany(webhooks, { users: 5, versions: 1 });
  const hangs = Promise.withResolvers<number>();
  world.rules.set("shop.example", () => hangs.promise);
  // It claims only when it is woken, so once.
  const dying = startReplica(webhooks, { orders: { leaseMs: 2_000, pollIntervalMs: 3_600_000 } });
  await until("the probe is on its way", () => world.sent.length === 1);
  // As if killed: it has the row in hand, but its heartbeat and its settle find another token.
  await webhooks.query(
    "update outbox_orders set claim_token = gen_random_uuid() where status = 'SENDING'",
  );
  await using other = startReplica(webhooks);
  other.look();
  await until("the probe is sent again", () => world.sent.length === 2);
  assert.equal(world.sent[0]?.id, world.sent[1]?.id);
  world.rules.clear();
  hangs.resolve(200);
  await allSucceeded(webhooks, 5);
  await dying.stop();
});

// What a process leaves behind that dies between the settle of a probe and the note of its outcome.
for (const [status, state] of [["SUCCEEDED", "ACTIVE"], ["PARKED", "FAILING"]]) {
  Deno.test(`a probe that ended ${status}, unnoted, is found`, async () => {
    await using webhooks = await freshWebhooks();
    const id = await webhooks.endpoint("shop.example");
    await webhooks.set(id, failing());
    await receiveMany(webhooks, { users: 2, versions: 1 });
    assert.equal(await letProbeThrough(webhooks.database, id), true);
    assert.equal(await endLostProbe(webhooks.database, id, quickEndpoints), false, "it waits");
    const ended = (seconds: number) =>
      webhooks.query(
        `update outbox_orders set status = $1, finished_at = now(), updated_at = now() - $2 * interval '1 second'
         where id = (select probe_order_id from endpoints)`,
        [status, seconds],
      );
    await ended(0);
    assert.equal(await endLostProbe(webhooks.database, id, quickEndpoints), false, "just now");
    await ended(60);
    assert.equal(await endLostProbe(webhooks.database, id, quickEndpoints), true);
    const after = await webhooks.stateOf(id);
    assert.equal(after?.state, state);
    assert.equal(after?.probe_order_id, null);
    assert.equal(after?.is_draining, state === "ACTIVE");
  });
}

Deno.test("a probe that expired or was erased is followed by the next", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  await webhooks.set(id, failing());
  await receiveMany(webhooks, { users: 3, versions: 1 });
  const [expired] = await webhooks.query<{ id: string }>(
    `update outbox_orders set expires_at = now() - interval '1 s'
     where id = (select id from outbox_orders order by created_at, position limit 1)
     returning id`,
  );
  assert.equal(await letProbeThrough(webhooks.database, id), true);
  assert.equal((await webhooks.stateOf(id))?.probe_order_id, expired?.id);
  await using _replica = startReplica(webhooks);
  await until("it was not sent", async () => (await webhooks.counts())["ABORTED"] === 1);
  world.rules.set("shop.example", () => down);
  await until("another one was sent", () => world.sent.length > 0);
  await webhooks.query(
    "delete from outbox_orders where id = (select probe_order_id from endpoints)",
  );
  world.rules.clear();
  await until("the endpoint is well", async () => (await webhooks.stateOf(id))?.state === "ACTIVE");
});

Deno.test("an endpoint that fails for too long is DISABLED, and probed no more", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  world.rules.set("shop.example", () => down);
  await using replica = startReplica(webhooks, { endpoints: { disableAfterMs: 1_500 } });
  await receiveMany(webhooks, { users: 20, versions: 1 });
  await untilState(webhooks, id, "DISABLED");
  await until("all are parked", async () => (await webhooks.counts())["PARKED"] === 20);
  assert.ok(replica.log.some((line) => line.includes(`${id} has failed for too long`)));
  const { probe_order_id, probe_in_ms } = await webhooks.stateOf(id) ?? {};
  assert.deepEqual([probe_order_id, probe_in_ms], [null, null]);
});

Deno.test("orders that were parked for too long end with a dead letter and the ledger", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example");
  await webhooks.pause(id);
  await receiveMany(webhooks, { users: 700, versions: 1 });
  await webhooks.query(
    `update outbox_orders
     set created_at = now() - interval '31 d', updated_at = now() - interval '31 d'`,
  );
  const fresh = eventOf({ userId: "fresh" });
  await webhooks.receive([fresh]);
  await using replica = startReplica(webhooks, { endpoints: { keepMs: 30 * 86_400_000 } });
  await until("the old ones have ended", async () => (await webhooks.counts())["ABORTED"] === 700);
  assert.deepEqual(await webhooks.counts(), { ABORTED: 700, PARKED: 1 });
  const ended = await webhooks.query(
    `select count(*)::int as orders
     from outbox_orders
     join idempo_ledger ledger on ledger.order_id = id
     where is_dead and last_error_code = 'KEPT_TOO_LONG' and finished_at is not null
       and ledger.status = 'FAILED' and ledger.http_status = 408 and reason_code = 'KEPT_TOO_LONG'`,
  );
  assert.deepEqual(ended, [{ orders: 700 }]);
  assert.ok(replica.log.some((line) => line.includes("kept too long")));
  assert.equal(await abortKeptTooLong(webhooks.database, id, 60_000), 0);
});

Deno.test("the orders of a deleted endpoint end, and then the endpoint is removed", async () => {
  await using webhooks = await freshWebhooks();
  const { database, world } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  const hangs = Promise.withResolvers<number>();
  world.rules.set("shop.example", () => hangs.promise);
  await using _replica = startReplica(webhooks);
  await receiveMany(webhooks, { users: 10, versions: 1 });
  await until("some are on their way", () => world.sent.length === 4);
  await webhooks.pause(id);
  await receiveMany(webhooks, { users: 800, versions: 1 });
  await webhooks.set(id, { state: "DELETED", state_since: new Date(Date.now() - 120_000) });
  await until("the parked ones have ended", async () => !(await webhooks.counts())["PARKED"]);
  assert.equal(await removeDeleted(database, id), false, "some are on their way");
  assert.equal((await webhooks.stateOf(id))?.state, "DELETED");
  await webhooks.set(id, { state_since: new Date() });
  hangs.resolve(503);
  await until("all have ended", async () => (await webhooks.counts())["ABORTED"] === 810);
  const [one] = await webhooks.query(
    `select count(*)::int as orders from outbox_orders join idempo_ledger ledger on order_id = id
     where last_error_code = 'ENDPOINT_DELETED' and http_status = 410 and not is_dead`,
  );
  assert.deepEqual(one, { orders: 810 });
  assert.equal(await removeDeleted(database, id), false, "events may still be on their way");
  await webhooks.set(id, { state_since: new Date(Date.now() - 120_000) });
  await until("it is removed", async () => await webhooks.stateOf(id) === undefined);
  assert.deepEqual(await webhooks.query("select 1 from endpoint_secrets"), []);
});
