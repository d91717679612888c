// A reservation is granted at its time, once, and all that a grant has is there: P-101, P-103, P-104.
import assert from "node:assert/strict";
import { assertError } from "../support/api.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { notificationsOf } from "../support/notification.ts";
import {
  assertOnTime,
  assertSums,
  balanceOf,
  find,
  grantPoints,
  inMs,
  listOf,
  reservationRows,
  reserve,
  statusesOf,
  transactionRows,
  untilAllAre,
} from "../support/points.ts";
import { look, startStack } from "../support/stack.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

// A reservation that is granted then was not found by chance.
const noPolls = { ENTITLEMENT_RESERVATIONS_POLL_INTERVAL: "1h" };
const off = { ENTITLEMENT_RESERVATIONS_ENABLED: "false" };

Deno.test("P-101: points are granted at their time, once, with transaction, balance, event, audit and notification", async () => {
  await using stack = await startStack({ entitlement: noPolls });
  const { url, database: { ownerUrl }, rows } = stack.entitlement;
  const cause = { reason: "campaign", source_id: "c-1" };
  const reserved = await reserve(url, { ...cause, execute_at: inMs(3_000) });
  assert.equal(reserved.status, 202, reserved.text);
  const id = reserved.json.reservation_id;
  assert.equal(await balanceOf(url, "ann"), 0);

  assertOnTime(await untilAllAre(ownerUrl, ["DONE"]));
  const done = (await find(url, id)).json;
  assert.deepEqual([done.status, done.attempt_count], ["DONE", 0]);
  const transaction = {
    transaction_id: done.transaction_id,
    kind: "GRANT",
    unit: "points",
    point_amount: 10,
    balance_after: 10,
    version: 1,
    reason: "campaign",
    source_id: "c-1",
    reservation_id: id,
  };
  const { transactions: [listed] } = (await listOf(url, "ann", "points/transactions")).json;
  const { created_at, ...rest } = listed;
  assert.deepEqual(rest, transaction);
  const { json } = await listOf(url, "ann", "points");
  assert.deepEqual(json, {
    user_id: "ann",
    balances: [{ unit: "points", balance: 10, version: 1, updated_at: created_at }],
  });
  const audit = await rows(
    `select audit_id, stock_keeping_unit, action, source, source_id, detail->'point_amount' as amount
     from entitlement_audit`,
  );
  assert.deepEqual(audit, [{
    audit_id: done.transaction_id,
    stock_keeping_unit: "points:points",
    action: "POINTS_ADD",
    source: "campaign",
    source_id: "c-1",
    amount: 10,
  }]);
  await until("it is sent", async () => {
    return (await notificationsOf(stack.place)).some(({ status }) => status === "SENT");
  });
  const inbox = await look(stack.notification.url, "/debug/notification/inbox/ann");
  assert.deepEqual(
    inbox.notifications.map(({ event_id, type }: Record<string, string>) => [event_id, type]),
    [[done.transaction_id, "PointsAdded"]],
  );
  await assertSums(ownerUrl);
});

Deno.test("a reservation without reason and source_id is granted under its own id", async () => {
  await using kenri = await startEntitlement(noPolls);
  const { reservation_id } = (await reserve(kenri.url)).json;
  await untilAllAre(kenri.database.ownerUrl, ["DONE"]);
  const [transaction] = await transactionRows(kenri.database.ownerUrl);
  assert.deepEqual(
    [transaction?.source, transaction?.source_id],
    ["reservation", reservation_id],
  );
});

Deno.test("the trace of a reservation is that of its grant", async () => {
  await using kenri = await startEntitlement(noPolls);
  const headers = { "X-Trace-Id": "the-shop-at-noon" };
  await reserve(kenri.url, { execute_at: inMs(300) }, undefined, headers);
  await untilAllAre(kenri.database.ownerUrl, ["DONE"]);
  const traces = await kenri.rows(
    `select payload->>'trace_id' as of_event, detail->>'trace_id' as of_audit
     from outbox_events
     join entitlement_audit on audit_id = event_id`,
  );
  assert.deepEqual(traces, [{ of_event: "the-shop-at-noon", of_audit: "the-shop-at-noon" }]);
});

Deno.test("P-103: what was due while no worker ran is granted when one starts, with attempts 0", async () => {
  await using kenri = await startEntitlement(off);
  const { ownerUrl } = kenri.database;
  for (const [user_id, ms] of [["ann", 100], ["ann", 0], ["bob", 200]] as const) {
    assert.equal((await reserve(kenri.url, { user_id, execute_at: inMs(ms) })).status, 202);
  }
  await until("all are due", async () => {
    const [late] = await kenri.rows<{ all: boolean }>(
      "select bool_and(execute_at < now() - interval '1 second') as all from point_reservations",
    );
    return late?.all === true;
  });
  assert.deepEqual(await statusesOf(ownerUrl), { PENDING: 3 });
  const settings = { ...kenri.settings, ENTITLEMENT_RESERVATIONS_ENABLED: "true" };
  await using _worker = await startService("entitlement", settings);
  const rows = await untilAllAre(ownerUrl, ["DONE"]);
  assert.deepEqual(rows.map(({ attempt_count }) => attempt_count), [0, 0, 0]);
  assert.deepEqual([await balanceOf(kenri.url, "ann"), await balanceOf(kenri.url, "bob")], [
    20,
    10,
  ]);
  await assertSums(ownerUrl);
});

Deno.test("a service whose worker is off grants and spends at once, and keeps reservations for others", async () => {
  await using kenri = await startEntitlement(off);
  assert.equal((await grantPoints(kenri.url)).status, 200);
  const { reservation_id } = (await reserve(kenri.url)).json;
  assert.equal((await find(kenri.url, reservation_id)).json.status, "PENDING");
});

Deno.test("P-104: a time in the past means now", async () => {
  await using kenri = await startEntitlement(noPolls);
  const { ownerUrl } = kenri.database;
  for (const execute_at of [inMs(-1_000), "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"]) {
    const { status, text } = await reserve(kenri.url, { execute_at });
    assert.equal(status, 202, text);
  }
  const rows = await untilAllAre(ownerUrl, ["DONE"]);
  assert.equal(rows.length, 3);
  assert.equal(await balanceOf(kenri.url, "ann"), 30);
  await assertSums(ownerUrl);
});

Deno.test("P-104: a time without an offset, and one beyond max-ahead, is refused", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_RESERVATIONS_MAX_AHEAD: "2h" });
  const bad = ["2026-01-02T03:04:05", "9999-12-31T23:59:59Z", inMs(7_260_000)];
  for (const execute_at of bad) {
    const refused = await reserve(kenri.url, { execute_at });
    assertError(refused, 400, "BAD_REQUEST");
    assert.match(refused.json.message, /^execute_at must (be an existing|not be later than 20)/);
  }
  assert.equal((await reserve(kenri.url, { execute_at: inMs(7_140_000) })).status, 202);
  assert.equal((await reservationRows(kenri.database.ownerUrl)).length, 1);
});

Deno.test("by default a reservation may be made for five years ahead, and not for six", async () => {
  await using kenri = await startEntitlement();
  const days = (count: number) => ({ execute_at: inMs(count * 86_400_000) });
  assert.equal((await reserve(kenri.url, days(1_825))).status, 202);
  assertError(await reserve(kenri.url, days(1_827)), 400, "BAD_REQUEST");
});

Deno.test("an earlier reservation is granted at its time, although the worker sleeps until a later one", async () => {
  await using kenri = await startEntitlement(noPolls);
  const { ownerUrl } = kenri.database;
  await reserve(kenri.url, { user_id: "later", execute_at: inMs(3_600_000) });
  await reserve(kenri.url, { user_id: "next", execute_at: inMs(2_000) });
  await reserve(kenri.url, { user_id: "first", execute_at: inMs(1_500) });
  await until("both are granted", async () => (await statusesOf(ownerUrl))["DONE"] === 2);
  const rows = await reservationRows(ownerUrl);
  assert.deepEqual(rows.map(({ user_id }) => user_id), ["first", "next", "later"]);
  assertOnTime(rows.slice(0, 2));
});
