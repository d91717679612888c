// One key is one order: what a repeated request gets, what is another request, and whose keys they are.
import assert from "node:assert/strict";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { assertError } from "../support/api.ts";
import {
  findOrder,
  getOrder,
  ledger,
  order,
  orderRows,
  startOrders,
  untilAllAre,
} from "../support/orders.ts";
import { inMs, newKey } from "../support/points.ts";

const scopes = ["orders:write", "orders:read"] as const;
const [ann, bob] = [newClient("ann", ...scopes), newClient("bob", ...scopes)];
const [asAnn, asBob] = [bearer(ann.token), bearer(bob.token)];

const start = () => startOrders(tokensOf(ann, bob));

Deno.test("a repeated request gets the first answer byte for byte, also when the order is decided", async () => {
  await using stage = await start();
  const { url } = stage.receiver;
  const key = newKey();
  const first = await order(stage, { url }, key, asAnn);
  const again = () => order(stage, { url }, key, asAnn);
  assert.equal((await again()).text, first.text);
  await untilAllAre(stage, ["SUCCEEDED"]);
  const last = await again();
  assert.deepEqual([last.status, last.text], [202, first.text]);
  assert.equal(last.headers.get("Idempotency-Replayed"), "true");
  assert.equal(stage.receiver.received.length, 1);
});

Deno.test("of many requests with one key at once, one is accepted and all get its answer", async () => {
  await using stage = await start();
  const { url } = stage.receiver;
  const key = newKey();
  const path = `/${key}`;
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => order(stage, { url: url + path }, key, asAnn)),
  );
  assert.deepEqual(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1);
  await untilAllAre(stage, ["SUCCEEDED"]);
  assert.equal((await orderRows(stage)).length, 1);
  assert.equal(stage.receiver.arrived(path).length, 1);
});

Deno.test("another body under the same key is a conflict, and changes nothing", async () => {
  await using stage = await start();
  const { url } = stage.receiver;
  const key = newKey();
  const fields = { url, payload: { a: 1, b: [1, 2] }, expires_at: inMs(3_600_000) };
  const first = await order(stage, fields, key, asAnn);
  const others = [
    { ...fields, url: `${url}/other` },
    { ...fields, payload: { a: 1, b: [2, 1] } },
    { ...fields, payload: { a: 1 } },
    { ...fields, payload: null },
    { ...fields, expires_at: inMs(7_200_000) },
    { ...fields, expires_at: undefined },
  ];
  for (const other of others) {
    const refused = await order(stage, other, key, asAnn);
    assertError(refused, 409, "IDEMPOTENCY_KEY_CONFLICT");
  }
  assert.equal((await order(stage, fields, key, asAnn)).text, first.text);
});

Deno.test("the order of members and white space are not part of a request, numbers are what they mean", async () => {
  await using stage = await start();
  const { url } = stage.receiver;
  const key = newKey();
  const first = await order(stage, { url, payload: { a: 1, b: { c: 2, d: "ü" } } }, key, asAnn);
  const same = `{ "payload": {"b":{"d":"\\u00fc","c":2.0},"a":1e0}, "adapter":"http",
    "url":${JSON.stringify(url)}, "unknown": true }`;
  const again = await order(stage, same, key, asAnn);
  assert.deepEqual([again.status, again.text], [202, first.text]);
});

Deno.test("each caller has keys and orders of its own", async () => {
  await using stage = await start();
  const { url } = stage.receiver;
  const key = newKey();
  const ofAnn = await order(stage, { url }, key, asAnn);
  const ofBob = await order(stage, { url, payload: "other" }, key, asBob);
  assert.deepEqual([ofAnn.status, ofBob.status], [202, 202]);
  assert.notEqual(ofAnn.json.order_id, ofBob.json.order_id);
  assertError(await getOrder(stage, ofAnn.json.order_id, asBob), 404, "NOT_FOUND");
  assert.equal((await getOrder(stage, ofAnn.json.order_id, asAnn)).status, 200);
  for (const [headers, own] of [[asAnn, ofAnn], [asBob, ofBob]] as const) {
    const { status, json } = await findOrder(stage, key, headers);
    assert.deepEqual([status, json.order_id], [200, own.json.order_id]);
  }
});

Deno.test("a key is known by the ledger when its order has been deleted", async () => {
  await using stage = await start();
  const { url } = stage.receiver;
  const key = newKey();
  const fields = { url: `${url}/deleted` };
  const first = await order(stage, fields, key, asAnn);
  await untilAllAre(stage, ["SUCCEEDED"]);
  await stage.rows("delete from outbox_orders where id = $1", [first.json.order_id]);
  const again = await order(stage, fields, key, asAnn);
  assert.deepEqual([again.status, again.text], [202, first.text]);
  const { json: found } = await findOrder(stage, key, asAnn);
  assert.deepEqual(
    [found.order_id, found.status, found.ledger.http_status],
    [first.json.order_id, "SUCCEEDED", 200],
  );
  assertError(await findOrder(stage, key, asBob), 404, "NOT_FOUND");
  assertError(await order(stage, { url, payload: 1 }, key, asAnn), 409, "IDEMPOTENCY_KEY_CONFLICT");
  assert.deepEqual(await orderRows(stage), []);
  assert.equal(stage.receiver.arrived("/deleted").length, 1);
  const entries = (await ledger(stage)).filter(({ order_id }) => order_id === first.json.order_id);
  assert.equal(entries.length, 1);
});

Deno.test("what is sent is the payload, whatever it is", async () => {
  await using stage = await start();
  const { url } = stage.receiver;
  const payloads = [
    null,
    17,
    "text",
    [],
    { "10": 1, "9": 2, b: 3, a: [{}] },
    { text: "日本語 🎫 \u2028 </script> \\u0000 \"'" },
    JSON.parse('{"__proto__":{"a":1},"constructor":2}'),
  ];
  for (const [i, payload] of payloads.entries()) {
    const { status, text } = await order(
      stage,
      { url: `${url}/payload-${i}`, payload },
      newKey(),
      asAnn,
    );
    assert.equal(status, 202, text);
  }
  await untilAllAre(stage, ["SUCCEEDED"]);
  for (const [i, payload] of payloads.entries()) {
    const [{ body } = { body: "" }, ...more] = stage.receiver.arrived(`/payload-${i}`);
    assert.equal(more.length, 0);
    assert.equal(body, JSON.stringify(payload));
  }
});
