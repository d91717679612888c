// An order from its acceptance to the ledger: W-101, W-102, W-105, W-107, W-109 and W-112.
import assert from "node:assert/strict";
import type { Settings } from "../../tools/servers/service_process.ts";
import {
  attemptsOf,
  getOrder,
  give,
  ledger,
  order,
  type OrderRow,
  orderRows,
  type Orders,
  somePayload,
  startOrders,
  untilAllAre,
} from "../support/orders.ts";
import { inMs, newKey } from "../support/points.ts";

const idle: Settings = { NOTIFICATION_ORDERS_ENABLED: "false" };
const atWork: Settings = { NOTIFICATION_ORDERS_ENABLED: "true" };

const onlyRow = async (stage: Orders): Promise<OrderRow> => {
  const rows = await orderRows(stage);
  assert.equal(rows.length, 1);
  return rows[0] as OrderRow;
};

Deno.test("W-101: an order is PENDING, then SENDING, then SUCCEEDED, and the ledger keeps the answer", async () => {
  await using stage = await startOrders();
  const { receiver } = stage;
  let during: OrderRow | undefined;
  receiver.behave(async () => {
    during = await onlyRow(stage);
    return { status: 201, body: '{"ticket":17}', headers: { "Content-Type": "application/json" } };
  });
  const key = newKey();
  const accepted = await order(stage, { url: `${receiver.url}/hook?a=1` }, key);
  assert.equal(accepted.status, 202, accepted.text);
  const { order_id, status, ...others } = accepted.json;
  assert.deepEqual([status, others], ["PENDING", {}]);

  const [row] = await untilAllAre(stage, ["SUCCEEDED"]);
  assert.equal(during?.status, "SENDING");
  assert.ok(during?.locked_by);
  assert.deepEqual([row?.id, row?.attempts, row?.locked_by], [order_id, 0, null]);
  assert.deepEqual([row?.last_error_code, row?.last_error_msg], [null, null]);

  assert.equal(receiver.received.length, 1);
  const [{ method, path, headers, body }] = receiver.received as [typeof receiver.received[0]];
  assert.deepEqual([method, path], ["POST", "/hook?a=1"]);
  assert.equal(headers.get("Idempotency-Key"), order_id);
  assert.equal(headers.get("Content-Type"), "application/json");
  assert.deepEqual(JSON.parse(body), somePayload);

  const [entry, ...more] = await ledger(stage);
  assert.equal(more.length, 0);
  assert.deepEqual(
    [entry?.status, entry?.http_status, entry?.reason_code, entry?.order_id, entry?.attempts],
    ["SUCCEEDED", 201, null, order_id, 0],
  );
  assert.deepEqual([entry?.adapter, entry?.request_digest], ["http", row?.request_digest]);
  assert.ok(entry?.first_sent_at && entry.first_sent_at <= entry.decided_at);
  assert.match(JSON.stringify(entry.response_payload_json), /ticket/);

  const found = (await getOrder(stage, order_id)).json;
  assert.deepEqual([found.order_id, found.status, found.attempts], [order_id, "SUCCEEDED", 0]);
  assert.deepEqual([found.ledger.status, found.ledger.http_status], ["SUCCEEDED", 201]);
});

Deno.test("W-102: after a timeout it is FAILED and due by the table of pauses; the second attempt succeeds", async () => {
  await using stage = await startOrders({
    NOTIFICATION_ORDERS_SEND_TIMEOUT: "400ms",
    NOTIFICATION_ORDERS_BACKOFF: "3s,1h",
  });
  const { receiver } = stage;
  receiver.behave("hang", 200);
  await give(stage, { url: receiver.url });
  const [failed] = await untilAllAre(stage, ["FAILED"]);
  assert.deepEqual([failed?.attempts, failed?.last_error_code], [1, "TIMEOUT"]);
  assert.ok(failed?.last_error_msg);
  const pauseMs = Number(failed.next_run_at) - Number(failed.updated_at);
  assert.equal(pauseMs, 3_000);
  assert.deepEqual(await ledger(stage), [], "nothing is decided yet");

  const [row] = await untilAllAre(stage, ["SUCCEEDED"]);
  assert.equal(row?.attempts, 1, "attempts counts failures");
  const [first, second] = receiver.received;
  assert.ok(first && second && receiver.received.length === 2);
  assert.equal(second.headers.get("Idempotency-Key"), first.headers.get("Idempotency-Key"));
  assert.equal(second.body, first.body);
  const betweenMs = second.at - first.at;
  assert.ok(betweenMs >= 3_000 && betweenMs < 10_000, `${betweenMs} ms`);
  const [entry] = await ledger(stage);
  assert.deepEqual([entry?.status, entry?.attempts], ["SUCCEEDED", 1]);
  const attempts = await attemptsOf(stage, row?.id ?? "");
  assert.deepEqual(
    attempts.map(({ outcome, reason_code }) => [outcome, reason_code]),
    [["RETRIED", "TIMEOUT"], ["SUCCEEDED", null]],
  );
});

Deno.test("each pause is the one of its attempt, and the last one repeats", async () => {
  await using stage = await startOrders({
    NOTIFICATION_ORDERS_MAX_ATTEMPTS: "5",
    NOTIFICATION_ORDERS_BACKOFF: "1h,2h,3h",
  });
  stage.receiver.behave(500);
  await give(stage, { url: stage.receiver.url });
  for (const [at, hours] of [1, 2, 3, 3].entries()) {
    const [row] = await untilAllAre(stage, ["FAILED"]);
    assert.equal(row?.attempts, at + 1);
    assert.equal(Number(row?.next_run_at) - Number(row?.updated_at), hours * 3_600_000);
    await stage.rows("update outbox_orders set status = 'PENDING', next_run_at = now()");
  }
  const [row] = await untilAllAre(stage, ["ABORTED"]);
  assert.equal(row?.attempts, 5);
  assert.equal(stage.receiver.received.length, 5);
});

const knownAs = (status: string, digest: string) =>
  `insert into idempo_ledger
     (idempotency_key, request_digest, status, http_status, response_payload_json, order_id)
   select idempotency_key, ${digest}, '${status}', 299, '"kept"', id
   from outbox_orders`;

Deno.test("W-105: what the ledger knows as SUCCEEDED becomes SUCCEEDED, and nothing is sent", async () => {
  await using stage = await startOrders(idle);
  for (let i = 0; i < 3; i++) await give(stage, { url: stage.receiver.url });
  await stage.rows(knownAs("SUCCEEDED", "request_digest"));
  const before = await ledger(stage);
  await using _worker = await stage.replica(atWork);
  await untilAllAre(stage, ["SUCCEEDED"]);
  assert.deepEqual(await ledger(stage), before);
  assert.equal(stage.receiver.connections, 0);
});

Deno.test("W-109: with another digest in the ledger it is ABORTED, and the ledger stays as it is", async () => {
  await using stage = await startOrders(idle);
  await give(stage, { url: stage.receiver.url });
  await stage.rows(knownAs("SUCCEEDED", "'another'"));
  const before = await ledger(stage);
  await using _worker = await stage.replica(atWork);
  const [row] = await untilAllAre(stage, ["ABORTED"]);
  assert.equal(row?.last_error_code, "IDEMPOTENCY_CONFLICT");
  assert.deepEqual(await ledger(stage), before);
  assert.equal(stage.receiver.connections, 0);
});

Deno.test("W-107: an order that can't be read is ABORTED at once, and nothing is sent", async () => {
  await using stage = await startOrders(idle);
  const { receiver: { url } } = stage;
  const unreadable = [
    { adapter: "http", payload: {} },
    { adapter: "http", url: null, payload: {} },
    { adapter: "http", url: 17, payload: {} },
    { adapter: "http", url: "nowhere", payload: {} },
    { adapter: "http", url },
    { url },
    {},
    [],
    "text",
    null,
  ];
  for (const request of unreadable) {
    const id = await give(stage, { url });
    await stage.rows("update outbox_orders set order_request_json = $2 where id = $1", [
      id,
      JSON.stringify(request),
    ]);
  }
  const good = await give(stage, { url });
  await using worker = await stage.replica(atWork);
  const rows = await untilAllAre(stage, ["ABORTED", "SUCCEEDED"]);
  const aborted = rows.filter(({ status }) => status === "ABORTED");
  assert.equal(aborted.length, unreadable.length);
  for (const { last_error_code, attempts } of aborted) {
    assert.deepEqual([last_error_code, attempts], ["UNREADABLE_REQUEST", 0]);
  }
  assert.equal(stage.receiver.received.length, 1, "only the good one");
  const entries = await ledger(stage);
  for (const { order_id, status, http_status, reason_code } of entries) {
    const expected = order_id === good
      ? ["SUCCEEDED", 200, null]
      : ["FAILED", 400, "UNREADABLE_REQUEST"];
    assert.deepEqual([status, http_status, reason_code], expected);
  }
  assert.equal(entries.length, rows.length);
  assert.deepEqual(worker.log.filter(({ level }) => level === "fatal"), []);
});

Deno.test("W-112: an order whose expires_at has passed is ABORTED, and never sent after it", async () => {
  await using stage = await startOrders(idle);
  const { receiver: { url } } = stage;
  const expires_at = inMs(1_500);
  const late = await give(stage, { url, expires_at });
  const inTime = await give(stage, { url, expires_at: inMs(3_600_000) });
  await stage.rows("select pg_sleep(1.6)");
  await using _worker = await stage.replica(atWork);
  const rows = await untilAllAre(stage, ["ABORTED", "SUCCEEDED"]);
  const rowOf = (id: string) => rows.find((row) => row.id === id);
  assert.deepEqual(
    [rowOf(late)?.status, rowOf(late)?.last_error_code],
    ["ABORTED", "EXPIRED"],
  );
  assert.equal(rowOf(inTime)?.status, "SUCCEEDED");
  assert.equal(stage.receiver.received.length, 1);
  const entry = (await ledger(stage)).find(({ order_id }) => order_id === late);
  assert.deepEqual(
    [entry?.status, entry?.http_status, entry?.reason_code],
    ["FAILED", 408, "EXPIRED"],
  );
});

Deno.test("W-112: a retry that is due after expires_at is not made, and the order ends at that time", async () => {
  await using stage = await startOrders({ NOTIFICATION_ORDERS_BACKOFF: "1h" });
  const { receiver } = stage;
  receiver.behave(500, 200);
  await give(stage, { url: receiver.url, expires_at: inMs(1_500) });
  const [row] = await untilAllAre(stage, ["ABORTED"]);
  assert.equal(row?.last_error_code, "EXPIRED");
  assert.equal(receiver.received.length, 1);
});
