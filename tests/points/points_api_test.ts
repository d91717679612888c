// The HTTP API of points as its contract has it: forms of answers, defaults, units, and what a
// statement and the balances show.
import assert from "node:assert/strict";
import { assertError, call } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { untilAll } from "../support/outbox.ts";
import {
  assertSums,
  cancel,
  find,
  grantPoints,
  inMs,
  listOf,
  paths,
  reserve,
  reserveRight,
  spendPoints,
} from "../support/points.ts";
import { until } from "../../tools/servers/wait.ts";

let kenri: Entitlement;
let url: string;
Deno.test.beforeAll(async () => {
  kenri = await startEntitlement();
  url = kenri.url;
});
Deno.test.afterAll(() => kenri.close());

const newUser = () => ({ user_id: `user ${crypto.randomUUID()}` });
const inUtc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

Deno.test("a reservation is accepted with 202 and exactly its seven members", async () => {
  const user = newUser();
  const asked = { ...user, execute_at: "2029-01-02T03:04:05.6789+09:00" };
  const { status, json, headers } = await reserve(url, asked);
  assert.equal(status, 202);
  assert.equal(headers.get("Content-Type"), "application/json");
  const { reservation_id, created_at, ...rest } = json;
  assert.match(reservation_id, uuid);
  assert.match(created_at, inUtc);
  assert.deepEqual(rest, {
    ...user,
    unit: "points",
    point_amount: 10,
    execute_at: "2029-01-01T18:04:05.678900Z",
    status: "PENDING",
  });
  const found = await find(url, reservation_id);
  assert.deepEqual([found.status, found.json], [200, json]);
});

Deno.test("a reservation of the past keeps its time", async () => {
  const { json } = await reserve(url, { ...newUser(), execute_at: "0001-02-03T04:05:06.000007Z" });
  assert.equal(json.execute_at, "0001-02-03T04:05:06.000007Z");
});

Deno.test("a decided reservation also has transaction_id, done_at, attempt_count and last_error", async () => {
  const done = (await reserve(url, newUser())).json;
  const cancelled = (await reserve(url, { ...newUser(), execute_at: inMs(3_600_000) })).json;
  await cancel(url, cancelled.reservation_id);
  await until("it is done", async () => {
    return (await find(url, done.reservation_id)).json.status === "DONE";
  });
  for (const [reserved, status] of [[done, "DONE"], [cancelled, "CANCELLED"]] as const) {
    const { json } = await find(url, reserved.reservation_id);
    const { transaction_id, done_at, attempt_count, last_error, ...rest } = json;
    assert.deepEqual(rest, { ...reserved, status });
    assert.match(done_at, inUtc);
    assert.deepEqual([attempt_count, last_error ?? null], [0, null]);
    if (status === "DONE") assert.match(transaction_id, uuid);
    else assert.equal(transaction_id ?? null, null);
  }
});

Deno.test("a reserved right is accepted with 202, and found with its members", async () => {
  const user = newUser();
  const asked = { ...user, action: "REVOKE", execute_at: "2029-01-02T03:04:05Z" };
  const { status, json } = await reserveRight(url, asked);
  assert.equal(status, 202);
  const { reservation_id, created_at } = json;
  assert.match(reservation_id, uuid);
  assert.match(created_at, inUtc);
  assert.deepEqual([json.user_id, json.stock_keeping_unit, json.action, json.status], [
    ...[user.user_id, "book", "REVOKE", "PENDING"],
  ]);
  assert.equal(json.execute_at, "2029-01-02T03:04:05.000000Z");
  assert.equal("outcome" in json, false, "it has no outcome yet");
  const found = await find(url, reservation_id, {}, paths.reserveRight);
  assert.deepEqual([found.status, found.json], [200, json]);
});

Deno.test("grants and spends answer with the transaction and the balance after it", async () => {
  const user = newUser();
  const steps = [
    [grantPoints, "GRANT", 30, 30],
    [spendPoints, "SPEND", -12, 18],
    [grantPoints, "GRANT", 1, 19],
    [spendPoints, "SPEND", -19, 0],
  ] as const;
  for (const [i, [ask, kind, point_amount, balance]] of steps.entries()) {
    const answer = await ask(url, { ...user, point_amount: Math.abs(point_amount) });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(Object.keys(answer.json), ["transaction", "balance"]);
    const { transaction_id, created_at, ...rest } = answer.json.transaction;
    assert.match(transaction_id, uuid);
    assert.match(created_at, inUtc);
    const expected = { kind, unit: "points", point_amount, balance_after: balance, version: i + 1 };
    assert.deepEqual(rest, { ...expected, reason: "purchase", source_id: "p-1" });
    assert.equal(answer.json.balance, balance);
  }
});

Deno.test("a spend of more than the balance is refused, and changes nothing but its stored answer", async () => {
  const user = newUser();
  assertError(await spendPoints(url, user), 409, "INSUFFICIENT_POINTS");
  await grantPoints(url, { ...user, point_amount: 9 });
  assertError(await spendPoints(url, user), 409, "INSUFFICIENT_POINTS");
  await grantPoints(url, { ...user, unit: "coins", point_amount: 100 });
  assertError(await spendPoints(url, user), 409, "INSUFFICIENT_POINTS");
  const { json } = await listOf(url, user.user_id, "points", { unit: "points" });
  assert.deepEqual([json.balances[0].balance, json.balances[0].version], [9, 1]);
});

Deno.test("each unit of a user has a balance of its own, and unit chooses one", async () => {
  const user = newUser();
  const units = ["a", "0", "gems_v2.x-y", "x".repeat(64)];
  for (const [i, unit] of units.entries()) {
    const { json, text, status } = await grantPoints(url, { ...user, unit, point_amount: i + 1 });
    assert.equal(status, 200, text);
    assert.deepEqual([json.balance, json.transaction.version], [i + 1, 1]);
  }
  const { json } = await listOf(url, user.user_id, "points");
  assert.equal(json.user_id, user.user_id);
  assert.deepEqual(
    json.balances.map(({ unit, balance }: Record<string, unknown>) => [unit, balance]),
    units.map((unit, i) => [unit, i + 1]).sort(),
    "they are in the order of their units",
  );
  for (const balance of json.balances) {
    assert.deepEqual(Object.keys(balance), ["unit", "balance", "version", "updated_at"]);
    assert.match(balance.updated_at, inUtc);
    const one = await listOf(url, user.user_id, "points", { unit: balance.unit });
    assert.deepEqual(one.json.balances, [balance]);
  }
  const none = await listOf(url, user.user_id, "points", { unit: "points" });
  assert.deepEqual(none.json, { ...user, balances: [] });
});

Deno.test("an unknown user has no balances, no transactions and no reservations", async () => {
  const { user_id } = newUser();
  assert.deepEqual((await listOf(url, user_id, "points")).json, { user_id, balances: [] });
  for (const name of ["transactions", "reservations"] as const) {
    const { status, json } = await listOf(url, user_id, `points/${name}`);
    assert.equal(status, 200);
    assert.deepEqual(json[name], []);
    assert.equal("next_cursor" in json, false);
  }
});

Deno.test("any text can name a user of points, whatever it means elsewhere", async () => {
  for (
    const name of ["a/b?c#d&e", "100%", "%41", "a:b", "日本語 🎫", "'; --", "\\u0000", "e\u0301"]
  ) {
    assert.equal((await grantPoints(url, { user_id: name, reason: name })).status, 200);
    assert.equal((await reserve(url, { user_id: name, source_id: name })).status, 202);
    const { json } = await listOf(url, name, "points");
    assert.equal(json.user_id, name);
    assert.ok(json.balances[0].balance >= 10);
    const { transactions } = (await listOf(url, name, "points/transactions")).json;
    assert.equal(transactions.at(-1).reason, name);
  }
  await assertSums(kenri.database.ownerUrl);
  const events = await untilAll(kenri.database.ownerUrl, "PUBLISHED");
  assert.ok(events.every(({ attempt_count }) => attempt_count === 0));
});

Deno.test("each path refuses the methods that it does not have, and says which it has", async () => {
  const allowed: [path: string, allow: string][] = [
    [paths.reserve, "POST"],
    [paths.grant, "POST"],
    [paths.spend, "POST"],
    [paths.reserveRight, "POST"],
    [`${paths.reserve}/${crypto.randomUUID()}`, "DELETE, GET, HEAD"],
    [`${paths.reserveRight}/${crypto.randomUUID()}`, "DELETE, GET, HEAD"],
    ["/v1/users/ann/points", "GET, HEAD"],
    ["/v1/users/ann/points/transactions", "GET, HEAD"],
    ["/v1/users/ann/points/reservations", "GET, HEAD"],
  ];
  for (const [path, allow] of allowed) {
    const answer = await call(url + path, { method: "PUT" });
    assertError(answer, 405, "METHOD_NOT_ALLOWED");
    assert.equal(answer.headers.get("Allow")?.split(", ").sort().join(", "), allow, path);
  }
});

Deno.test("the default unit is that of the settings", async () => {
  await using gems = await startEntitlement({ ENTITLEMENT_POINTS_UNIT: "gems" });
  assert.equal((await reserve(gems.url, { execute_at: inMs(3_600_000) })).json.unit, "gems");
  await grantPoints(gems.url);
  await spendPoints(gems.url, { point_amount: 1 });
  const { balances } = (await listOf(gems.url, "ann", "points")).json;
  assert.deepEqual([balances[0].unit, balances[0].balance], ["gems", 9]);
});
