// An order whose attempts are used up is a dead letter, and can be sent back: W-104.
import assert from "node:assert/strict";
import { ask } from "../../tools/servers/asking.ts";
import { attemptsOf, getOrder, give, ledger, startOrders, untilAllAre } from "../support/orders.ts";
import { look, operate } from "../support/stack.ts";
import { outcomes, sendBack, untilDead } from "../operators/dead_letters.ts";

const deadOrders = "/debug/notification/dead-letters?layer=order";

Deno.test("W-104: attempts used up: ABORTED, ledger FAILED, dead letter; sent back it succeeds, and that is audited", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_MAX_ATTEMPTS: "3" });
  const { receiver } = stage;
  receiver.behave({ status: 503, body: "no room" });
  const order_id = await give(stage, { url: receiver.url });
  const [row] = await untilAllAre(stage, ["ABORTED"]);
  assert.deepEqual([row?.attempts, row?.last_error_code], [3, "SERVER_ERROR"]);
  const [failed, ...more] = await ledger(stage);
  assert.equal(more.length, 0);
  assert.deepEqual(
    [failed?.status, failed?.http_status, failed?.reason_code, failed?.attempts],
    ["FAILED", 502, "SERVER_ERROR", 3],
  );
  assert.match(JSON.stringify(failed?.response_payload_json), /no room/);
  const [dead] = await untilDead(stage.url, deadOrders, 1);
  assert.deepEqual([dead?.layer, dead?.id], ["order", order_id]);
  assert.equal((await getOrder(stage, order_id)).json.status, "ABORTED");

  receiver.behave(200);
  const sent = await operate(stage.url, sendBack, { layer: "order", ids: [order_id] });
  assert.deepEqual(outcomes(sent), ["SENT_BACK"]);
  const [again] = await untilAllAre(stage, ["SUCCEEDED"]);
  assert.deepEqual([again?.id, again?.attempts], [order_id, 0]);
  assert.equal(again?.operation_id, sent.operation_id);
  const [entry] = await ledger(stage);
  assert.deepEqual(
    [entry?.status, entry?.http_status, entry?.reason_code, entry?.operation_id],
    ["SUCCEEDED", 200, null, sent.operation_id],
  );
  assert.equal(receiver.received.length, 4);
  const keys = receiver.received.map(({ headers, body }) => headers.get("Idempotency-Key") + body);
  assert.equal(new Set(keys).size, 1, "the same id and body each time");
  const outcomesOf = (await attemptsOf(stage, order_id)).map(({ outcome }) => outcome);
  assert.deepEqual(outcomesOf, ["RETRIED", "RETRIED", "GAVE_UP", "SENT_BACK", "SUCCEEDED"]);

  const { operations: [operation] } = await look(stage.url, "/debug/notification/operations");
  assert.deepEqual([operation.kind, operation.layer, operation.who], ["SEND_BACK", "order", "kim"]);
  assert.deepEqual((await look(stage.url, deadOrders)).dead_letters, []);
  const [operator] = await ask<{ who: string }>(stage.ownerUrl, "select who from operations");
  assert.equal(operator?.who, "kim");
});
