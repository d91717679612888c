// Every request that changes points is carried out once under its key, and its answer is repeated byte
// for byte: P-105.
import assert from "node:assert/strict";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { type Answer, assertError, grant, post, someFields } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import {
  assertSums,
  cancel,
  find,
  grantPoints,
  inMs,
  listOf,
  newKey,
  reservationRows,
  reserve,
  reserveRight,
  spendPoints,
  transactionRows,
} from "../support/points.ts";
import { until } from "../../tools/servers/wait.ts";

const allScopes = ["points:write", "points:read", "entitlements:write"] as const;
const shop = newClient("shop", ...allScopes);
const till = newClient("till", ...allScopes);
const byShop = bearer(shop.token);
const byTill = bearer(till.token);

let kenri: Entitlement;
let url: string;
Deno.test.beforeAll(async () => {
  kenri = await startEntitlement(tokensOf(shop, till));
  url = kenri.url;
});
Deno.test.afterAll(() => kenri.close());

const ahead = () => ({ user_id: `user ${crypto.randomUUID()}`, execute_at: inMs(3_600_000) });

const doors = {
  reserve: [reserve, { point_amount: 11, user_id: "other", execute_at: inMs(7_200_000) }],
  grant: [grantPoints, { point_amount: 11, user_id: "other", source_id: "p-2", reason: "gift" }],
  spend: [spendPoints, { point_amount: 11, user_id: "other", source_id: "p-2", reason: "gift" }],
  "reserve a right": [reserveRight, {
    ...{ action: "REVOKE", user_id: "other", stock_keeping_unit: "song", purchase_id: "p-2" },
    ...{ reason: "gift", execute_at: inMs(7_200_000) },
  }],
} as const;

function assertReplay(replay: Answer, first: Answer): void {
  assert.equal(first.headers.get("Idempotency-Replayed"), null);
  assert.equal(replay.headers.get("Idempotency-Replayed"), "true");
  assert.deepEqual([replay.status, replay.text], [first.status, first.text]);
}

const countRows = async () => {
  const { ownerUrl } = kenri.database;
  const rows = [await reservationRows(ownerUrl), await transactionRows(ownerUrl)];
  return [...rows.map(({ length }) => length), (await kenri.counts()).idempotency_keys];
};

for (const [name, [ask, others]] of Object.entries(doors)) {
  Deno.test(`P-105: ${name}: the same request gets the same bytes, and is carried out once`, async () => {
    const key = newKey();
    const body = ahead();
    const first = await ask(url, body, key, byShop);
    assert.ok([200, 202, 409].includes(first.status), first.text);
    const before = await countRows();
    assertReplay(await ask(url, { unknown: [1], ...body }, key, byShop), first);
    const headers = { ...byShop, "X-Trace-Id": "another" };
    assertReplay(await ask(url, body, key, headers), first);
    assert.deepEqual(await countRows(), before);
  });

  Deno.test(`P-105: ${name}: the same key with another body is refused, and nothing is stored`, async () => {
    const key = newKey();
    const body = ahead();
    await ask(url, body, key, byShop);
    const before = await countRows();
    for (const [field, value] of Object.entries(others)) {
      const other = await ask(url, { ...body, [field]: value }, key, byShop);
      assertError(other, 409, "IDEMPOTENCY_KEY_CONFLICT");
      assert.equal(other.headers.get("Idempotency-Replayed"), null, field);
    }
    if (name !== "reserve a right") {
      const other = await ask(url, { ...body, unit: "coins" }, key, byShop);
      assertError(other, 409, "IDEMPOTENCY_KEY_CONFLICT");
    }
    for (const [another, [askAnother]] of Object.entries(doors)) {
      if (another === name) continue;
      assertError(await askAnother(url, body, key, byShop), 409, "IDEMPOTENCY_KEY_CONFLICT");
    }
    const change = await post(url, "grants", { ...someFields, ...body }, key, byShop);
    assertError(change, 409, "IDEMPOTENCY_KEY_CONFLICT");
    assert.deepEqual(await countRows(), before);
  });
}

Deno.test("P-105: the same key of another caller is its own reservation, which nobody else sees", async () => {
  const key = newKey();
  const body = ahead();
  const ofShop = await reserve(url, body, key, byShop);
  const ofTill = await reserve(url, body, key, byTill);
  assert.deepEqual([ofShop.status, ofTill.status], [202, 202]);
  assert.equal(ofTill.headers.get("Idempotency-Replayed"), null);
  const [id, other] = [ofShop, ofTill].map(({ json }) => json.reservation_id);
  assert.notEqual(id, other);
  assertError(await find(url, id, byTill), 404, "NOT_FOUND");
  assertError(await cancel(url, id, byTill), 404, "NOT_FOUND");
  assert.equal((await find(url, id, byShop)).json.status, "PENDING");
  for (const [headers, own] of [[byShop, id], [byTill, other]] as const) {
    const { json } = await listOf(url, body.user_id, "points/reservations", {}, headers);
    const ids = json.reservations.map((one: { reservation_id: string }) => one.reservation_id);
    assert.deepEqual(ids, [own]);
  }
});

Deno.test("two spellings of one instant are the same request", async () => {
  const key = newKey();
  const { user_id } = ahead();
  const spellings = [
    "2029-06-01T12:00:00.5Z",
    "2029-06-01T12:00:00.500000Z",
    "2029-06-01T14:00:00.50+02:00",
    "2029-06-01T02:30:00.500-09:30",
  ];
  const [first, ...others] = spellings.map((execute_at) => () =>
    reserve(url, { user_id, execute_at }, key, byShop)
  );
  const answer = await first?.() as Answer;
  assert.equal(answer.json.execute_at, "2029-06-01T12:00:00.500000Z");
  for (const other of others) assertReplay(await other(), answer);
  const later = { user_id, execute_at: "2029-06-01T12:00:00.500001Z" };
  assertError(await reserve(url, later, key, byShop), 409, "IDEMPOTENCY_KEY_CONFLICT");
});

Deno.test("the default unit by its name, and without it, is the same request", async () => {
  const key = newKey();
  const { user_id } = ahead();
  const first = await grantPoints(url, { user_id }, key, byShop);
  assertReplay(await grantPoints(url, { user_id, unit: "points" }, key, byShop), first);
});

Deno.test("a key that a transaction or a reservation still holds can't be used again, even if its answer has expired", async () => {
  const body = ahead();
  await grantPoints(url, { user_id: body.user_id, point_amount: 100 }, newKey(), byShop);
  for (const [name, [ask]] of Object.entries(doors)) {
    const key = newKey();
    const { status } = await ask(url, body, key, byShop);
    assert.ok(status < 300, name);
    await kenri.rows("update idempotency_keys set expires_at = now()");
    const before = await countRows();
    for (const [askAgain] of Object.values(doors)) {
      assertError(await askAgain(url, body, key, byShop), 409, "IDEMPOTENCY_KEY_CONFLICT");
    }
    const other = { ...body, source_id: "p-9", purchase_id: "p-9" };
    assertError(await ask(url, other, key, byShop), 409, "IDEMPOTENCY_KEY_CONFLICT");
    assert.deepEqual(await countRows(), before, name);
  }
  await assertSums(kenri.database.ownerUrl);
});

Deno.test("a refused spend leaves its key free once the answer has expired, because no row holds it", async () => {
  const { user_id } = ahead();
  const key = newKey();
  assertError(await spendPoints(url, { user_id }, key, byShop), 409, "INSUFFICIENT_POINTS");
  await grantPoints(url, { user_id }, newKey(), byShop);
  assertError(await spendPoints(url, { user_id }, key, byShop), 409, "INSUFFICIENT_POINTS");
  await kenri.rows("update idempotency_keys set expires_at = now()");
  assert.equal((await spendPoints(url, { user_id }, key, byShop)).status, 200);
});

Deno.test("no caller can use a key that begins with reservation:, for points or for rights", async () => {
  const { reservation_id } = (await reserve(url, ahead(), newKey(), byShop)).json;
  const before = await countRows();
  for (const key of ["reservation:", `reservation:${reservation_id}`, "reservation:x"]) {
    for (const [ask] of Object.values(doors)) {
      assertError(await ask(url, ahead(), key, byShop), 400, "BAD_REQUEST");
    }
    for (const action of ["grants", "revokes"] as const) {
      const change = await post(url, action, someFields, key, byShop);
      assertError(change, 400, "BAD_REQUEST");
      assert.match(change.json.message, /^Idempotency-Key /);
    }
  }
  assert.deepEqual(await countRows(), before);
  for (const key of ["Reservation:x", "reservations:x", "reservation"]) {
    const { status } = await grant(url, { user_id: crypto.randomUUID() }, key, byShop);
    assert.equal(status, 200, key);
  }
});

Deno.test("a due reservation is a grant under its own key, behind the name of its caller", async () => {
  const { user_id } = ahead();
  const { json } = await reserve(url, { user_id, execute_at: inMs(0) }, newKey(), byShop);
  const right = { user_id, execute_at: inMs(0) };
  const { json: ofRight } = await reserveRight(url, right, newKey(), byShop);
  await until("both are done", async () => {
    const done = await kenri.rows(
      "select from point_reservations where user_id = $1 and status = 'DONE'",
      [user_id],
    );
    return done.length === 2;
  });
  const keys = await kenri.rows<{ key: string }>(
    "select idempotency_key as key from point_transactions where user_id = $1",
    [user_id],
  );
  assert.deepEqual(keys, [{ key: `shop reservation:${json.reservation_id}` }]);
  const audit = await kenri.rows(
    `select caller, request_id from entitlement_audit
     where user_id = $1 and stock_keeping_unit = 'book'`,
    [user_id],
  );
  assert.deepEqual(audit, [{
    caller: "shop",
    request_id: `reservation:${ofRight.reservation_id}`,
  }]);
  const shown = await listOf(url, user_id, "points", {}, byShop);
  assert.equal(shown.json.balances[0].balance, 10);
});
