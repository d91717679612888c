// A caller has the orders of an endpoint sent again.
import assert from "node:assert/strict";
import { abortKeptTooLong } from "../../notification/endpoints/end_orders.ts";
import { replayCommand, replayRoute } from "../../notification/endpoints/replay.ts";
import { commit } from "../../shared/commands/command.ts";
import { until } from "../../tools/servers/wait.ts";
import { EntitlementEventType } from "../../proto/gen/entitlement/v1/entitlement_event_pb.ts";
import { eventOf } from "../support/events.ts";
import { freshWebhooks, receiveMany, startReplica, type Webhooks } from "../support/webhooks.ts";

interface Replayed {
  operation_id: string | null;
  found: number;
  replayed: number;
  complete: boolean;
  next_cursor?: string;
}

const range = { from: "2000-01-01T00:00:00Z", to: "2100-01-01T00:00:00Z", only: "ALL" };
const sender = { caller: "", idempotencyKey: "", traceId: "", traceparent: null };

async function call(
  { database }: Webhooks,
  id: string,
  fields: Record<string, unknown> = {},
  given: Partial<typeof sender> = {},
): Promise<Replayed> {
  const body = replayRoute.body?.schema.parse({ ...range, ...fields });
  const req = { param: () => id, path: "/" };
  const input = await replayRoute.toInput(
    body as never,
    { ...sender, ...given },
    req as never,
    {} as never,
  );
  const { result: [answer] } = await commit(database, replayCommand, [input]);
  assert.ok(answer?.status === 200, JSON.stringify(answer));
  return JSON.parse(answer.body);
}

async function callUntilComplete(
  webhooks: Webhooks,
  id: string,
  fields: Record<string, unknown> = {},
): Promise<Replayed[]> {
  const calls = [await call(webhooks, id, fields)];
  for (let last = calls[0]; last && !last.complete; last = calls.at(-1)) {
    calls.push(await call(webhooks, id, { ...fields, cursor: last.next_cursor }));
  }
  return calls;
}

const allEnded = (webhooks: Webhooks) =>
  until("all orders have ended", async () => {
    const { SUCCEEDED = 0, ABORTED = 0, ...others } = await webhooks.counts();
    return SUCCEEDED + ABORTED > 0 && Object.keys(others).length === 0;
  }, 60_000);

Deno.test("H-105: a replay of a range sends the same ids, and a dry run counts them", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example", { at_once: 32 });
  await webhooks.endpoint("other.example", { at_once: 32 });
  await using _replica = startReplica(webhooks);
  const events = await receiveMany(webhooks, { users: 100, versions: 12 });
  await allEnded(webhooks);
  const first = world.to("shop.example").map(({ id }) => id);
  assert.equal(first.length, events.length);
  world.sent.length = 0;

  const dry = await call(webhooks, id, { dry_run: true });
  assert.deepEqual(dry, { operation_id: null, found: 1_200, replayed: 0, complete: true });
  assert.equal((await webhooks.counts())["SUCCEEDED"], 2_400, "a dry run changes nothing");

  const calls = await callUntilComplete(webhooks, id);
  assert.deepEqual(calls.map(({ replayed }) => replayed), [500, 500, 200]);
  await until("all were sent again", () => world.sent.length >= 1_200);
  await allEnded(webhooks);
  assert.equal(world.to("other.example").length, 0);
  assert.deepEqual(world.to("shop.example").map(({ id }) => id).sort(), first.sort());
  const ledger = await webhooks.query<{ count: number }>(
    "select count(*)::int as count from idempo_ledger where operation_id is not null and status = 'SUCCEEDED'",
  );
  assert.equal(ledger[0]?.count, 1_200);
  const operations = await webhooks.query(
    "select kind, layer, jsonb_array_length(items) as orders from operations order by done_at",
  );
  assert.deepEqual(operations.map((one) => Object.values(one as object)), [
    ["REPLAY", "order", 500],
    ["REPLAY", "order", 500],
    ["REPLAY", "order", 200],
  ]);
});

Deno.test("a call of a replay that is repeated sends nothing again that was sent since the first", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example", { at_once: 32 });
  await using _replica = startReplica(webhooks);
  await receiveMany(webhooks, { users: 600, versions: 1 });
  await allEnded(webhooks);
  const { next_cursor: cursor } = await call(webhooks, id);
  assert.equal((await call(webhooks, id, { cursor })).replayed, 100);
  await allEnded(webhooks);
  assert.equal((await call(webhooks, id, { cursor })).replayed, 0, "with its cursor");
  const given = { idempotencyKey: "replay-1" };
  const first = await call(webhooks, id, {}, given);
  await allEnded(webhooks);
  assert.deepEqual(await call(webhooks, id, {}, given), first, "with its key");
  await allEnded(webhooks);
  assert.equal(webhooks.world.sent.length, 600 + 600 + 500);
});

Deno.test("a replay of what failed leaves alone what succeeded, waits or can't be sent", async () => {
  await using webhooks = await freshWebhooks();
  const { world } = webhooks;
  const id = await webhooks.endpoint("shop.example");
  world.rules.set("shop.example", ({ body }) => body.data.user_id === "bad" ? 400 : 200);
  const webhookSends = { maxAttempts: 1, backoff: { delaysMs: [10] }, sendTimeoutMs: 1_000 };
  await using _replica = startReplica(webhooks, { orders: { webhooks: webhookSends } });
  const bad = eventOf({ userId: "bad" });
  const withdrawn = eventOf({ userId: "bad", stockKeepingUnit: "pen" });
  const expired = eventOf({ userId: "bad", stockKeepingUnit: "cup" });
  await webhooks.receive([bad, withdrawn, expired, eventOf({ userId: "good" })]);
  await allEnded(webhooks);
  await webhooks.query(
    "update outbox_orders set last_error_code = 'USER_ERASED' where event_id = $1",
    [withdrawn.eventId],
  );
  await webhooks.query("update outbox_orders set expires_at = now() where event_id = $1", [
    expired.eventId,
  ]);
  assert.equal((await call(webhooks, id, { only: "FAILED", dry_run: true })).found, 1);
  world.rules.clear();
  assert.equal((await call(webhooks, id, { only: "FAILED" })).replayed, 1);
  await until("it succeeded", async () => (await webhooks.counts())["SUCCEEDED"] === 2);
  assert.deepEqual(world.sent.map(({ id }) => id).filter((id) => id === bad.eventId).length, 2);
  assert.equal((await call(webhooks, id, { only: "FAILED" })).found, 0);
});

Deno.test("a replay takes only the types and the times that are asked for, and nothing of erased users", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example");
  await using _replica = startReplica(webhooks);
  const revoked = eventOf({ version: 2, eventType: EntitlementEventType.REVOKED });
  await webhooks.receive([eventOf(), revoked]);
  await allEnded(webhooks);
  const dry = (fields: Record<string, unknown>) =>
    call(webhooks, id, { ...fields, dry_run: true }).then(({ found }) => found);
  assert.equal(await dry({ event_types: ["EntitlementRevoked"] }), 1);
  assert.equal(await dry({ event_types: ["PointsAdded"] }), 0);
  assert.equal(await dry({ to: "2000-01-02T00:00:00Z" }), 0);
  assert.equal(await dry({}), 2);
  await webhooks.query("update outbox_orders set request_digest = 'erased' where position = 1");
  assert.equal(await dry({}), 1, "no order of a user who was erased");
  await assert.rejects(dry({ to: range.from }), /to must be later than from/);
  await assert.rejects(dry({ cursor: "x" }), /cursor must be a next_cursor/);
});

Deno.test("what is replayed while an endpoint is paused is parked, and kept from then on", async () => {
  await using webhooks = await freshWebhooks();
  const id = await webhooks.endpoint("shop.example");
  await using replica = startReplica(webhooks);
  await receiveMany(webhooks, { users: 10, versions: 3 });
  await allEnded(webhooks);
  await webhooks.query("update outbox_orders set created_at = now() - interval '40 days'");
  await webhooks.pause(id);
  await call(webhooks, id);
  assert.deepEqual(await webhooks.counts(), { PARKED: 30 });
  assert.equal(await abortKeptTooLong(webhooks.database, id, 60_000), 0);
  await webhooks.resume(id);
  replica.look();
  await allEnded(webhooks);
  assert.deepEqual(await webhooks.counts(), { SUCCEEDED: 30 });
  assert.equal(webhooks.world.sent.length, 60);
});
