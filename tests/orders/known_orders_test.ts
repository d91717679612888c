// What the ledger knows is not changed by an order that was not sent.
import assert from "node:assert/strict";
import type { Settings } from "../../tools/servers/service_process.ts";
import { give, ledger, startOrders, untilAllAre } from "../support/orders.ts";

const idle: Settings = { NOTIFICATION_ORDERS_ENABLED: "false" };
const atWork: Settings = { NOTIFICATION_ORDERS_ENABLED: "true" };

const knownAs = (status: string, digest: string) =>
  `insert into idempo_ledger
     (idempotency_key, request_digest, status, http_status, response_payload_json, order_id)
   select idempotency_key, ${digest}, '${status}', 299, '"kept"', id
   from outbox_orders`;

Deno.test("what the ledger knows as FAILED is not sent again without an operation", async () => {
  await using stage = await startOrders(idle);
  await give(stage, { url: stage.receiver.url });
  await stage.rows(knownAs("FAILED", "request_digest"));
  const before = await ledger(stage);
  await using _worker = await stage.replica(atWork);
  await untilAllAre(stage, ["ABORTED"]);
  assert.deepEqual(await ledger(stage), before);
  assert.equal(stage.receiver.connections, 0);
});
