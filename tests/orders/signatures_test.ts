// Webhooks are signed so that the reference library verifies them, also while a secret is rotated:
// H-101. And each send to an endpoint can be seen by its caller.
import assert from "node:assert/strict";
import { assertError } from "../support/api.ts";
import { act, attemptsAt, change, make } from "../support/endpoints.ts";
import { eventOf } from "../support/events.ts";
import { publishTo } from "../support/notification.ts";
import {
  order,
  orderRows,
  type Orders,
  somePayload,
  startOrders,
  untilAllAre,
} from "../support/orders.ts";
import { newKey } from "../support/points.ts";
import { type Received, verified } from "../support/receiver.ts";
import { until } from "../../tools/servers/wait.ts";

const rejects = (webhook: Received, secret: string) =>
  assert.throws(() => verified(webhook, secret), /No matching signature/);

const signaturesOf = ({ headers }: Received) =>
  (headers.get("webhook-signature") ?? "").split(" ").length;

async function sendEvent({ place, receiver }: Orders): Promise<Received> {
  const before = receiver.received.length;
  await publishTo(place, [eventOf({ userId: "ann ☂" })]);
  await receiver.until(before + 1);
  return receiver.received.at(-1) as Received;
}

Deno.test("H-101: a webhook verifies with its secret, during a rotation with both, then with the new one", async () => {
  await using stage = await startOrders();
  const { endpoint_id: id, secret: old } = await make(stage);
  const other = await make(stage, { event_types: ["PointsTaken"] });
  const before = await sendEvent(stage);
  const event = verified(before, old);
  assert.equal(event.type, "EntitlementGranted");
  assert.equal(event.data["user_id"], "ann ☂");
  assert.equal(before.headers.get("webhook-id"), event.data["event_id"]);
  assert.equal(signaturesOf(before), 1);
  rejects(before, other.secret);
  rejects({ ...before, body: before.body.replace("ann", "bob") }, old);

  const { status, json } = await act(stage, id, "rotate-secret", { overlap: "2s" });
  assert.equal(status, 200);
  const rotated = json.secret;
  const during = await sendEvent(stage);
  assert.equal(signaturesOf(during), 2);
  for (const secret of [old, rotated]) verified(during, secret);
  rejects(during, other.secret);

  await until("the overlap is over", () => Date.now() > Date.parse(json.old_secrets_end_at));
  const after = await sendEvent(stage);
  assert.equal(signaturesOf(after), 1);
  verified(after, rotated);
  rejects(after, old);
});

Deno.test("a rotation without an overlap ends the old secrets at once, and deletes them", async () => {
  await using stage = await startOrders();
  const { endpoint_id: id, secret: first } = await make(stage);
  const second = (await act(stage, id, "rotate-secret", { overlap: "1h" })).json.secret;
  const third = (await act(stage, id, "rotate-secret", { overlap: "0s" })).json.secret;
  const webhook = await sendEvent(stage);
  verified(webhook, third);
  for (const secret of [first, second]) rejects(webhook, secret);
  const left = await stage.rows<{ n: number }>("select count(*)::int as n from endpoint_secrets");
  assert.deepEqual(left, [{ n: 1 }]);
});

Deno.test("an overlap is a day unless it is given, and never makes an earlier one longer", async () => {
  await using stage = await startOrders();
  const { endpoint_id: id } = await make(stage);
  const endsIn = async (fields: object) => {
    const { json } = await act(stage, id, "rotate-secret", { ...fields });
    return Math.round((Date.parse(json.old_secrets_end_at) - Date.now()) / 60_000);
  };
  assert.equal(await endsIn({ overlap: "1h" }), 60);
  assert.equal(await endsIn({}), 24 * 60);
  assert.equal(await endsIn({ overlap: null }), 24 * 60);
  const ends = await stage.rows<{ minutes: number | null }>(
    `select round(extract(epoch from expires_at - now()) / 60)::int as minutes
     from endpoint_secrets
     order by secret_id`,
  );
  assert.deepEqual(ends.map(({ minutes }) => minutes), [60, 1440, 1440, null]);
});

Deno.test("an endpoint has at most five valid secrets, and one without an end", async () => {
  await using stage = await startOrders();
  const { endpoint_id: id } = await make(stage);
  const rotate = (overlap: string) => act(stage, id, "rotate-secret", { overlap });
  for (let i = 0; i < 4; i++) assert.equal((await rotate("1h")).status, 200);
  assertError(
    await rotate("1h"),
    409,
    "ENDPOINT_STATE_CONFLICT",
    "the endpoint has 5 valid secrets: wait for the end of an overlap, or rotate with an overlap of 0s",
  );
  assert.equal(signaturesOf(await sendEvent(stage)), 5);
  await stage.rows(
    "update endpoint_secrets set expires_at = now() where expires_at is not null",
  );
  assert.equal((await rotate("1h")).status, 200);
  assert.equal((await stage.rows("select from endpoint_secrets")).length, 2);
  assert.equal((await rotate("0s")).status, 200);
  const answers = await Promise.all(Array.from({ length: 6 }, () => rotate("1h")));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 409, 409]);
  const current = await stage.rows("select from endpoint_secrets where expires_at is null");
  assert.equal(current.length, 1);
});

Deno.test("a repeated rotation makes one secret, and its answer does not show it", async () => {
  await using stage = await startOrders();
  const { endpoint_id: id } = await make(stage);
  const headers = { "Idempotency-Key": newKey() };
  const first = await act(stage, id, "rotate-secret", {}, headers);
  const again = await act(stage, id, "rotate-secret", {}, headers);
  assert.equal(again.headers.get("Idempotency-Replayed"), "true");
  const { secret, ...shown } = first.json;
  assert.deepEqual(again.json, shown);
  verified(await sendEvent(stage), secret);
  assert.equal((await stage.rows("select from endpoint_secrets")).length, 2);
  const other = await act(stage, id, "rotate-secret", { overlap: "1h" }, headers);
  assertError(other, 409, "IDEMPOTENCY_KEY_CONFLICT");
});

Deno.test("after the secret-key was rotated, webhooks are signed with the same secrets", async () => {
  const key = () => crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: "base64url" });
  const [oldKey, newKey] = [key(), key()];
  await using stage = await startOrders({ NOTIFICATION_ENDPOINTS_SECRET_KEY: oldKey });
  const before = await make(stage, { event_types: ["EntitlementGranted"] });
  await stage.service.stop();
  await using replica = await stage.replica({
    NOTIFICATION_ENDPOINTS_SECRET_KEY: `${newKey},${oldKey}`,
  });
  verified(await sendEvent(stage), before.secret);
  const after = await make({ ...stage, url: replica.url });
  await publishTo(stage.place, [eventOf()]);
  await stage.receiver.until(3);
  const signed = stage.receiver.received.slice(1).filter((webhook) => {
    try {
      return verified(webhook, after.secret);
    } catch {
      return verified(webhook, before.secret) && false;
    }
  });
  assert.equal(signed.length, 1);
});

Deno.test("a test is a webhook about no event, and is sent once under its key", async () => {
  await using stage = await startOrders();
  const { endpoint_id: id, secret } = await make(stage);
  const headers = { "Idempotency-Key": newKey() };
  const { status, json } = await act(stage, id, "test", {}, headers);
  assert.equal(status, 202);
  assert.equal(json.status, "PENDING");
  const again = await act(stage, id, "test", {}, headers);
  assert.deepEqual([again.status, again.json], [202, json]);
  await untilAllAre(stage, ["SUCCEEDED"]);
  const [webhook, ...more] = stage.receiver.received;
  assert.deepEqual(more, []);
  const { type, timestamp, data } = verified(webhook as Received, secret);
  assert.deepEqual([type, data], ["EndpointTest", { endpoint_id: id }]);
  assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60_000);
  assert.equal(webhook?.headers.get("webhook-id"), json.order_id);
  await act(stage, id, "test");
  await stage.receiver.until(2);
});

Deno.test("nothing is sent as a test while the endpoint is not ACTIVE", async () => {
  await using stage = await startOrders();
  const { endpoint_id: id } = await make(stage);
  await act(stage, id, "pause");
  const refused = await act(stage, id, "test");
  assertError(refused, 409, "ENDPOINT_STATE_CONFLICT", "the endpoint is PAUSED");
  assert.deepEqual(await orderRows(stage), []);
});

Deno.test("the attempts show what was sent and what came back, the newest first", async () => {
  await using stage = await startOrders();
  const { receiver } = stage;
  const { endpoint_id: id } = await make(stage);
  const { endpoint_id: other } = await make(stage, { event_types: ["PointsTaken"] });
  receiver.behave({ status: 503, headers: { "x-a": "b" }, body: "é".repeat(4_000) }, 200);
  const event = eventOf();
  await publishTo(stage.place, [event]);
  await untilAllAre(stage, ["SUCCEEDED"]);
  const orderId = (await order(stage, { endpoint_id: id })).json.order_id;
  await untilAllAre(stage, ["SUCCEEDED"]);
  const { status, json, text } = await attemptsAt(stage, id);
  assert.equal(status, 200, text);
  const [ordered, second, first] = json.attempts;
  assert.equal(json.attempts.length, 3);
  assert.equal(ordered.order_id, orderId);
  assert.deepEqual([ordered.event_id, ordered.event_type], [null, null]);
  for (const attempt of [first, second]) {
    assert.equal(attempt.event_id, event.eventId);
    assert.equal(attempt.event_type, "EntitlementGranted");
    assert.equal(attempt.request_headers["webhook-id"], event.eventId);
    assert.ok(attempt.begun_at <= attempt.ended_at);
  }
  assert.deepEqual(
    [first.outcome, first.reason_code, first.http_status],
    ["RETRIED", "SERVER_ERROR", 503],
  );
  assert.equal(first.response_headers["x-a"], "b");
  assert.ok(/^é+\ufffd?$/.test(first.response_body) && first.response_body.length <= 2_049);
  assert.deepEqual(
    [second.outcome, second.reason_code, second.http_status],
    ["SUCCEEDED", null, 200],
  );
  assert.deepEqual((await attemptsAt(stage, other)).json, { attempts: [] });
  const walked = [];
  let query: Record<string, string> = { limit: "1" };
  for (;;) {
    const page = (await attemptsAt(stage, id, query)).json;
    walked.push(...page.attempts);
    if (page.next_cursor === undefined) break;
    query = { limit: "1", cursor: page.next_cursor };
  }
  assert.deepEqual(walked, json.attempts);
});

Deno.test("an order that waits is sent to the new url of its endpoint", async () => {
  await using stage = await startOrders({ NOTIFICATION_WEBHOOKS_BACKOFF: "500ms" });
  const { receiver } = stage;
  receiver.behaveAt("/hooks", 500);
  const { endpoint_id: id, secret } = await make(stage);
  await order(stage, { endpoint_id: id });
  await receiver.until(1);
  await change(stage, id, { url: `${receiver.url}/new` });
  await untilAllAre(stage, ["SUCCEEDED"]);
  const [webhook] = receiver.arrived("/new");
  assert.deepEqual(verified(webhook as Received, secret), somePayload);
});
