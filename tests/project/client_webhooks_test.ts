// The TypeScript client's methods for orders and endpoints against the real service.
import assert from "node:assert/strict";
import { Conflict, notificationClient, Refused, Unavailable } from "../../client/client.ts";
import { plantedPayload } from "../../tools/planted.ts";
import { until } from "../../tools/servers/wait.ts";
import { startNotification } from "../support/notification.ts";
import { startOrders } from "../support/orders.ts";
import { freshPlaceOf } from "../support/places.ts";
import { verified } from "../support/receiver.ts";
import { openDoor } from "./door.ts";

const newKey = () => crypto.randomUUID();
const payload = { text: plantedPayload };

Deno.test("an order is given, also when its answer is lost, and found by its id and by its key", async () => {
  await using stage = await startOrders();
  await using door = openDoor(stage.url);
  const kenri = notificationClient(door.url);
  const key = newKey();
  door.loseNextAnswer(() => Promise.resolve());
  const given = await kenri.giveOrder(key, {
    adapter: "http",
    url: `${stage.receiver.url}/given`,
    payload,
  });
  assert.deepEqual([given.status, given.replayed], ["PENDING", true]);
  await until("it is sent", async () => {
    return (await kenri.findOrder(given.order_id)).status === "SUCCEEDED";
  });
  const { order_id, ledger } = await kenri.findOrderByKey(key);
  assert.deepEqual([order_id, ledger?.http_status], [given.order_id, 200]);
  assert.equal(stage.receiver.arrived("/given").length, 1);

  const other = { adapter: "http" as const, url: `${stage.receiver.url}/other`, payload };
  await assert.rejects(kenri.giveOrder(key, other), { name: "Conflict" });
  const inward = { adapter: "http" as const, url: "http://10.0.0.1/", payload };
  await assert.rejects(kenri.giveOrder(newKey(), inward), { code: "ADDRESS_BLOCKED" });
  await assert.rejects(kenri.findOrder(newKey()), { code: "NOT_FOUND" });
});

Deno.test("an endpoint is registered once, tried out, changed, paused, resumed and deleted", async () => {
  await using stage = await startOrders();
  const kenri = notificationClient(stage.url);
  const [key, url] = [newKey(), `${stage.receiver.url}/hooks`];
  const { secret = "", ...made } = await kenri.createEndpoint(key, { url, description: "mine" });
  assert.match(secret, /^whsec_/);
  const again = await kenri.createEndpoint(key, { url, description: "mine" });
  assert.deepEqual([again.endpoint_id, again.secret, again.replayed], [
    ...[made.endpoint_id, undefined, true],
  ]);
  const id = made.endpoint_id;

  const test = await kenri.testEndpoint(newKey(), id);
  await until("the test is sent", async () => {
    return (await kenri.findOrder(test.order_id)).status === "SUCCEEDED";
  });
  const [first] = stage.receiver.arrived("/hooks");
  assert.equal(first && verified(first, secret).type, "EndpointTest");
  const { attempts } = await kenri.listEndpointAttempts(id, { limit: 1 });
  assert.deepEqual(attempts.map(({ order_id, http_status }) => [order_id, http_status]), [
    ...[[test.order_id, 200]],
  ]);

  const rotated = await kenri.rotateSecret(newKey(), id, { overlap: "0s" });
  const rest = await kenri.testEndpoint(newKey(), id);
  await until("the second test is sent", async () => {
    return (await kenri.findOrder(rest.order_id)).status === "SUCCEEDED";
  });
  const [, second] = stage.receiver.arrived("/hooks");
  assert.ok(second && verified(second, rotated.secret ?? ""));
  assert.throws(() => verified(second, secret));

  const changed = await kenri.changeEndpoint(id, { event_types: ["PointsAdded"] });
  assert.deepEqual([changed.event_types, changed.description], [["PointsAdded"], "mine"]);
  assert.equal((await kenri.pauseEndpoint(id)).state, "PAUSED");
  await assert.rejects(kenri.testEndpoint(newKey(), id), Conflict);
  assert.equal((await kenri.resumeEndpoint(id)).state, "ACTIVE");
  const range = { from: "2000-01-01T00:00:00Z", to: "2100-01-01T00:00:00Z" };
  const counted = await kenri.replayEndpoint(newKey(), id, {
    ...range,
    only: "ALL",
    dry_run: true,
  });
  assert.deepEqual(counted, { found: 2, replayed: 0 });
  const replayed = await kenri.replayEndpoint(newKey(), id, { ...range, only: "ALL" });
  assert.deepEqual(replayed, { found: 2, replayed: 2 });
  await until("both arrive again", () => stage.receiver.arrived("/hooks").length === 4);

  const { endpoints } = await kenri.listEndpoints();
  assert.deepEqual(endpoints.map(({ endpoint_id }) => endpoint_id), [id]);
  await kenri.deleteEndpoint(id);
  await assert.rejects(kenri.findEndpoint(id), Refused);
  await assert.rejects(kenri.createEndpoint(newKey(), { url: "https://user@example.com/" }), {
    code: "ADDRESS_BLOCKED",
  });
});

Deno.test("a service without a sender is repeated until the deadline, and named in the error", async () => {
  await using place = await freshPlaceOf("notification");
  await using service = await startNotification(place);
  const kenri = notificationClient(service.url, { deadlineMs: 500 });
  const order = { adapter: "http" as const, url: "https://example.com/", payload };
  await assert.rejects(kenri.giveOrder(newKey(), order), (error) => {
    assert.ok(error instanceof Unavailable);
    assert.match(error.message, /SENDER_NOT_CONFIGURED/);
    return true;
  });
});
