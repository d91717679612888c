// Any JSON value is a payload, also one that PostgreSQL's operators on JSON can't read.
import assert from "node:assert/strict";
import { getOrder, order, startOrders, untilAllAre } from "../support/orders.ts";

Deno.test("texts that PostgreSQL can't store as text are sent as they were given", async () => {
  await using stage = await startOrders();
  const { receiver } = stage;
  const odd = ["\u0000", { a: ["b\u0000"] }, { "\u0000": 1 }, "\ud800", { "a\udc00": {} }];
  for (const payload of odd) {
    const answer = await order(stage, { url: receiver.url, payload });
    assert.equal(answer.status, 202);
    const found = await getOrder(stage, answer.json["order_id"]);
    assert.equal(found.json["url"], new URL(receiver.url).href.replace(/\/$/, ""));
  }
  await untilAllAre(stage, odd.map(() => "SUCCEEDED"));
  assert.deepEqual(
    new Set(receiver.received.map(({ body }) => body)),
    new Set(odd.map((payload) => JSON.stringify(payload))),
  );
});
