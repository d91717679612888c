// The statement of a user, newest first, and the reservations, soonest first: pages, filters, and whose
// they are.
import assert from "node:assert/strict";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { assertError } from "../support/api.ts";
import { startEntitlement } from "../support/entitlement.ts";
import {
  cancel,
  grantPoints,
  inMs,
  listOf,
  reserve,
  reserveRight,
  spendPoints,
  statusesOf,
} from "../support/points.ts";
import { until } from "../../tools/servers/wait.ts";

type Entry = Record<string, string>;
type Query = Record<string, string>;

async function walk(
  url: string,
  userId: string,
  name: "transactions" | "reservations",
  query: Query,
  headers = {},
): Promise<Entry[]> {
  const entries: Entry[] = [];
  let cursor: string | undefined;
  do {
    const asked = cursor === undefined ? query : { ...query, cursor };
    const { status, json, text } = await listOf(url, userId, `points/${name}`, asked, headers);
    assert.equal(status, 200, text);
    const allowed = json.next_cursor === undefined ? [name] : [name, "next_cursor"];
    assert.deepEqual(Object.keys(json).filter((key) => key !== "user_id"), allowed);
    const most = Number(query["limit"] ?? 50);
    assert.ok(json[name].length <= most);
    if (json.next_cursor !== undefined) assert.equal(json[name].length, most, "the page is full");
    assert.notEqual(json.next_cursor ?? "", cursor, "the next page is another one");
    entries.push(...json[name]);
    cursor = json.next_cursor;
  } while (cursor !== undefined);
  return entries;
}

const column = (entries: Entry[], name: string) => entries.map((entry) => entry[name]);

Deno.test("the statement has each transaction once, newest first, whatever the limit", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  for (let i = 0; i < 30; i++) {
    await Promise.all(
      ["points", "coins"].map((unit) =>
        (i % 3 === 2 ? spendPoints : grantPoints)(url, {
          unit,
          source_id: `${unit} ${i}`,
        })
      ),
    );
  }
  await grantPoints(url, { user_id: "bob" });
  const whole = await walk(url, "ann", "transactions", { limit: "200" });
  assert.equal(whole.length, 60);
  const times = column(whole, "created_at");
  assert.deepEqual(times, times.toSorted().toReversed());
  for (const limit of ["1", "7", "30", "60"]) {
    assert.deepEqual(await walk(url, "ann", "transactions", { limit }), whole);
  }
  assert.equal((await listOf(url, "ann", "points/transactions")).json.transactions.length, 50);
  for (const unit of ["points", "coins"]) {
    const ofUnit = await walk(url, "ann", "transactions", { unit, limit: "4" });
    const expected = Array.from({ length: 30 }, (_, i) => `${unit} ${29 - i}`);
    assert.deepEqual(column(ofUnit, "source_id"), expected);
    assert.deepEqual(column(ofUnit, "version").map(Number), expected.map((_, i) => 30 - i));
  }
});

Deno.test("new transactions do not shift the next page", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  for (let i = 0; i < 6; i++) await grantPoints(url, { source_id: `${i}` });
  const first = (await listOf(url, "ann", "points/transactions", { limit: "3" })).json;
  await grantPoints(url, { source_id: "new" });
  const query = { limit: "3", cursor: first.next_cursor };
  const second = (await listOf(url, "ann", "points/transactions", query)).json;
  assert.deepEqual(column(first.transactions, "source_id"), ["5", "4", "3"]);
  assert.deepEqual(column(second.transactions, "source_id"), ["2", "1", "0"]);
});

Deno.test("reservations are listed soonest first, each once, also those of one moment", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  const from = Date.now() + 3_600_000;
  for (let i = 0; i < 40; i++) {
    const execute_at = new Date(from + (i * 7 % 5) * 1_000).toISOString();
    await reserve(url, { execute_at });
  }
  await reserve(url, { user_id: "bob", execute_at: inMs(3_600_000) });
  const whole = await walk(url, "ann", "reservations", { limit: "200" });
  const times = column(whole, "execute_at");
  assert.deepEqual(times, times.toSorted());
  assert.equal(new Set(column(whole, "reservation_id")).size, 40);
  for (const limit of ["1", "7", "20", "40"]) {
    assert.deepEqual(await walk(url, "ann", "reservations", { limit }), whole);
  }
});

Deno.test("the status chooses reservations, and an unknown one is refused", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  const ids: Record<string, string> = {};
  for (const name of ["DONE", "CANCELLED", "FAILED", "PROCESSING", "PENDING"]) {
    const execute_at = name === "DONE" ? inMs(0) : inMs(3_600_000);
    ids[name] = (await reserve(url, { execute_at })).json.reservation_id;
  }
  await cancel(url, ids["CANCELLED"] ?? "");
  await until("one is done", async () => "DONE" in await statusesOf(kenri.database.ownerUrl));
  await kenri.rows(
    `update point_reservations
     set status = case when id = $1 then 'FAILED' else 'PROCESSING' end,
       claim_token = id, lease_until = now() + interval '1 hour'
     where id in ($1, $2)`,
    [ids["FAILED"], ids["PROCESSING"]],
  );
  for (const [status, id] of Object.entries(ids)) {
    const found = await walk(url, "ann", "reservations", { status });
    assert.deepEqual(found.map((one) => [one["reservation_id"], one["status"]]), [[id, status]]);
  }
  assert.equal((await walk(url, "ann", "reservations", {})).length, 5);
  for (const status of ["done", "", "OTHER", "DONE,PENDING"]) {
    assertError(await listOf(url, "ann", "points/reservations", { status }), 400, "BAD_REQUEST");
  }
});

Deno.test("a list shows the reservations of points that its caller has made, and no others", async () => {
  const clients = ["shop", "till"].map((name) =>
    newClient(name, "points:write", "points:read", "entitlements:write")
  );
  await using kenri = await startEntitlement(tokensOf(...clients));
  const { url } = kenri;
  const execute_at = inMs(3_600_000);
  const own = new Map<string, string[]>();
  for (const { token } of clients) {
    const headers = bearer(token);
    const made: string[] = [];
    for (let i = 0; i < 5; i++) {
      made.push((await reserve(url, { execute_at }, undefined, headers)).json.reservation_id);
    }
    await reserveRight(url, { execute_at }, undefined, headers);
    own.set(token, made.sort());
  }
  for (const [token, ids] of own) {
    const found = await walk(url, "ann", "reservations", { limit: "2" }, bearer(token));
    assert.deepEqual(column(found, "reservation_id").sort(), ids);
  }
});

Deno.test("a bad limit, cursor or unit is refused", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  for (const list of ["transactions", "reservations"] as const) {
    for (const limit of ["0", "201", "-1", "1.5", "x", "1e9"]) {
      const refused = await listOf(url, "ann", `points/${list}`, { limit });
      assertError(refused, 400, "BAD_REQUEST");
      assert.match(refused.json.message, /^limit /);
    }
    for (const cursor of ["x", "", "null", btoa("[]"), btoa('["a","b"]'), btoa("[1,2]")]) {
      const refused = await listOf(url, "ann", `points/${list}`, { cursor });
      assertError(refused, 400, "BAD_REQUEST", "cursor must be a next_cursor of this service");
    }
  }
  for (const list of ["points", "points/transactions"] as const) {
    for (const unit of ["", "A", "a b", "x".repeat(65), "ü", "\u0000"]) {
      const refused = await listOf(url, "ann", list, { unit });
      assertError(refused, 400, "BAD_REQUEST");
      assert.match(refused.json.message, /^unit /);
    }
  }
  for (const list of ["points", "points/transactions", "points/reservations"] as const) {
    for (const user of ["x".repeat(256), "\u0001"]) {
      assertError(await listOf(url, user, list), 400, "BAD_REQUEST");
    }
  }
});

Deno.test("a cursor of one list is refused by the other, or leads to a page of it", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  for (let i = 0; i < 3; i++) {
    await grantPoints(url);
    await reserve(url, { execute_at: inMs(3_600_000) });
  }
  const lists = ["transactions", "reservations"] as const;
  for (const [of, other] of [lists, lists.toReversed()] as [string, "transactions"][]) {
    const query = { limit: "1" };
    const { next_cursor } = (await listOf(url, "ann", `points/${of}` as "points", query)).json;
    const { status } = await listOf(url, "ann", `points/${other}`, {
      cursor: next_cursor,
    });
    assert.ok([200, 400].includes(status));
  }
});
