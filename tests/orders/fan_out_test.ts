// One order per matching endpoint for each event, however often the event is delivered: H-102.
import assert from "node:assert/strict";
import { EntitlementEventType } from "../../proto/gen/entitlement/v1/entitlement_event_pb.ts";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { type Made, make } from "../support/endpoints.ts";
import { eventOf, messageOf, publish } from "../support/events.ts";
import { countsOf, publishRaw, untilAllAcked } from "../support/notification.ts";
import {
  getOrder,
  give,
  order,
  orderRows,
  type Orders,
  startOrders,
  untilAllAre,
} from "../support/orders.ts";
import { pointsEventOf, pointsMessageOf } from "../support/points_events.ts";
import { pointsDurable, pointsSubjectOf } from "../../tools/load/stage.ts";

import { verified } from "../support/receiver.ts";

interface Subscriber extends Made {
  path: string;
}

const subscribe = async (
  stage: Orders,
  path: string,
  fields: Record<string, unknown> = {},
  headers = {},
): Promise<Subscriber> => ({
  ...await make(stage, { url: stage.receiver.url + path, ...fields }, headers),
  path,
});

Deno.test("H-102: each matching endpoint gets each event once, also when it is delivered five times", async () => {
  await using stage = await startOrders();
  const { place, receiver } = stage;
  const all = await subscribe(stage, "/all");
  const grants = await subscribe(stage, "/grants", { event_types: ["EntitlementGranted"] });
  const both = await subscribe(stage, "/both", {
    event_types: ["EntitlementRevoked", "PointsAdded"],
  });
  const ofAnn = await subscribe(stage, "/ann", { user_id: "ann" });
  const ofNobody = await subscribe(stage, "/nobody", { user_id: "nobody" });
  const granted = eventOf({ userId: "ann" });
  const revoked = eventOf({ userId: "bob", eventType: EntitlementEventType.REVOKED });
  const added = pointsEventOf({ user_id: "ann" });
  for (let delivery = 0; delivery < 5; delivery++) {
    await publishRaw(place, [messageOf(granted), messageOf(revoked)]);
    const { body } = pointsMessageOf(added);
    const headers = { event_type: added.event_type };
    await publish(place.natsUrl, pointsSubjectOf(place), [{ body, headers }]);
    await untilAllAcked(place);
    await untilAllAcked(place, undefined, pointsDurable);
  }
  const rows = await untilAllAre(stage, ["SUCCEEDED"]);
  const expected: [Subscriber, string[]][] = [
    [all, [granted.eventId, revoked.eventId, added.event_id]],
    [grants, [granted.eventId]],
    [both, [revoked.eventId, added.event_id]],
    [ofAnn, [granted.eventId, added.event_id]],
    [ofNobody, []],
  ];
  for (const [{ endpoint_id: id, path }, events] of expected) {
    const own = rows.filter(({ endpoint_id }) => endpoint_id === id);
    assert.deepEqual(own.map(({ event_id }) => event_id).sort(), events.toSorted(), path);
    for (const { event_id, idempotency_key } of own) {
      assert.equal(idempotency_key, `${event_id}:${id}`);
    }
    const ids = receiver.arrived(path).map(({ headers }) => headers.get("webhook-id"));
    assert.deepEqual(ids.sort(), events.toSorted(), path);
  }
  assert.equal((await countsOf(place)).processed_events, 3);
});

Deno.test("a webhook has type, timestamp and the fields of its event, and is signed with the endpoint's secret", async () => {
  await using stage = await startOrders();
  const { place, receiver } = stage;
  const [one, other] = [await subscribe(stage, "/one"), await subscribe(stage, "/other")];
  const event = eventOf({ userId: "日本語 🎫", sourceId: "p-17", version: 1 });
  await publishRaw(place, [messageOf(event)]);
  await receiver.until(2);
  for (const { path, secret } of [one, other]) {
    const [request] = receiver.arrived(path);
    assert.ok(request);
    const webhook = verified(request, secret);
    assert.deepEqual(Object.keys(webhook), ["type", "timestamp", "data"]);
    assert.equal(webhook.type, "EntitlementGranted");
    assert.equal(Date.parse(webhook.timestamp), Number(event.occurredAt));
    const { data } = webhook;
    assert.deepEqual(
      [data["user_id"], data["stock_keeping_unit"], data["source_id"], data["version"]],
      ["日本語 🎫", "book", "p-17", 1],
    );
    assert.equal(request.headers.get("content-type"), "application/json");
    assert.throws(() => verified(request, path === one.path ? other.secret : one.secret));
  }
});

Deno.test("an event that arrived before an endpoint existed is not sent to it", async () => {
  await using stage = await startOrders();
  await publishRaw(stage.place, [messageOf({ eventId: crypto.randomUUID() })]);
  await untilAllAcked(stage.place);
  await subscribe(stage, "/late");
  assert.deepEqual(await orderRows(stage), []);
  const event = eventOf({ version: 2 });
  await publishRaw(stage.place, [messageOf(event)]);
  await stage.receiver.until(1);
  const [row] = await untilAllAre(stage, ["SUCCEEDED"]);
  assert.equal(row?.event_id, event.eventId);
});

Deno.test("fan-out is written without a sender in the same replica, and sent by one that has it", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_ENABLED: "false" });
  await subscribe(stage, "/a");
  await publishRaw(stage.place, [messageOf(eventOf())]);
  await untilAllAcked(stage.place);
  assert.deepEqual((await orderRows(stage)).map(({ status }) => status), ["PENDING"]);
  await using _worker = await stage.replica({ NOTIFICATION_ORDERS_ENABLED: "true" });
  await stage.receiver.until(1);
  await untilAllAre(stage, ["SUCCEEDED"]);
});

Deno.test("an order with an endpoint_id is sent as a signed webhook with the order's id and its payload", async () => {
  const client = newClient("ann", "orders:write", "orders:read", "endpoints:write");
  const stranger = newClient("bob", "orders:write");
  await using stage = await startOrders(tokensOf(client, stranger));
  const endpoint = await subscribe(stage, "/own", {}, bearer(client.token));
  const fields = { endpoint_id: endpoint.endpoint_id, payload: { type: "ping", n: 1 } };
  const refused = await order(stage, fields, undefined, bearer(stranger.token));
  assert.equal(refused.status, 404, refused.text);
  const id = await give(stage, fields, undefined, bearer(client.token));
  await stage.receiver.until(1);
  const [request] = stage.receiver.arrived("/own");
  assert.ok(request);
  assert.equal(request.headers.get("webhook-id"), id);
  assert.deepEqual(verified(request, endpoint.secret) as unknown, fields.payload);
  await untilAllAre(stage, ["SUCCEEDED"]);
  const found = await getOrder(stage, id, bearer(client.token));
  assert.equal(found.json.status, "SUCCEEDED");
});
