// Bad input of the points API gets a clear error in the usual form, and nothing of it is stored.
import assert from "node:assert/strict";
import { type Answer, assertError, call, command } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import {
  grantPoints,
  inMs,
  newKey,
  paths,
  reserve,
  reserveRight,
  someBody,
  spendPoints,
} from "../support/points.ts";

let kenri: Entitlement;
let url: string;
Deno.test.beforeAll(async () => {
  // What is reserved in one test would be granted in another one.
  kenri = await startEntitlement({ ENTITLEMENT_RESERVATIONS_ENABLED: "false" });
  url = kenri.url;
});
Deno.test.afterAll(() => kenri.close());

const asks = { reserve, grant: grantPoints, spend: spendPoints, reserveRight };
type Door = keyof typeof asks;
const ofPoints: Door[] = ["reserve", "grant", "spend"];
const ofTimes: Door[] = ["reserve", "reserveRight"];
const doors = Object.keys(asks) as Door[];

const stored = () =>
  kenri.rows(
    `select (select count(*)::int from idempotency_keys) as answers,
       (select count(*)::int from point_reservations) as reservations,
       (select count(*)::int from point_transactions) as transactions,
       (select count(*)::int from outbox_events) as events,
       (select count(*)::int from entitlement_audit) as audited`,
  );

async function leavesNoTrace(work: () => Promise<void>): Promise<void> {
  const before = await stored();
  await work();
  assert.deepEqual(await stored(), before);
  const { log } = kenri.service;
  assert.deepEqual(log.filter(({ level }) => level === "error"), []);
}

/** Each value is refused with a message that names the field. */
function refuses(doors: Door[], field: string, values: unknown[]): Promise<void> {
  return leavesNoTrace(async () => {
    for (const door of doors) {
      for (const value of values) {
        const refused = await asks[door](url, { [field]: value });
        const what = `${door} with ${field} ${JSON.stringify(value)}: ${refused.text}`;
        assert.equal(refused.status, 400, what);
        assertError(refused, 400, "BAD_REQUEST");
        assert.match(refused.json.message, new RegExp(`^${field} \\w`), what);
        assert.doesNotMatch(refused.json.message, /NaN|undefined|expected|zod|Invalid/, what);
      }
    }
  });
}

async function refusesRaw(
  door: Door,
  field: string,
  written: string,
  message = new RegExp(`^${field} `),
): Promise<void> {
  const { [field]: _, ...others } = someBody[door] as Record<string, unknown>;
  const body = JSON.stringify(others).replace("{", `{"${field}":${written},`);
  const refused = await command(url + paths[door], body, newKey());
  assertError(refused, 400, "BAD_REQUEST");
  assert.match(refused.json.message, message, written);
}

Deno.test("an amount is a whole number from 1 to 9007199254740991", async () => {
  await refuses(ofPoints, "point_amount", [
    ...[0, -1, -9007199254740991, 0.5, 1.5, 1e-300, 9007199254740992, 1e300, 2 ** 63],
    ...["10", "", "ten", "1e3", true, false, null, undefined, [], [10], {}, { valueOf: 10 }],
  ]);
  await leavesNoTrace(async () => {
    for (const door of ofPoints) {
      const written = ["9007199254740993", "1e400", "-0", "10000000000000000000000", "1.0000001"];
      for (const number of written) await refusesRaw(door, "point_amount", number);
    }
  });
});

Deno.test("a whole number may be written in any form of JSON", async () => {
  for (const number of ["1e1", "10.0", "1.0E+1", "100e-1"]) {
    const body = JSON.stringify({ ...someBody.grant, point_amount: "?" }).replace('"?"', number);
    const { status, json } = await command(url + paths.grant, body, newKey());
    assert.deepEqual([status, json.transaction.point_amount], [200, 10], number);
  }
});

Deno.test("a time needs an offset, must exist, and be within max-ahead", async () => {
  await refuses(ofTimes, "execute_at", [
    ...["2027-01-02T03:04:05", "2027-01-02", "2027-01-02T03:04Z05", "2027-01-02 03:04:05Z"],
    ...["2027-02-29T00:00:00Z", "2027-02-30T00:00:00Z", "2027-04-31T00:00:00Z"],
    ...["2027-13-01T00:00:00Z", "2027-00-01T00:00:00Z", "2027-01-00T00:00:00Z"],
    ...["2027-01-32T00:00:00Z", "2100-02-29T00:00:00Z", "2027-01-02T24:00:01Z"],
    ...["2027-01-02T25:00:00Z", "2027-01-02T03:60:00Z", "2016-12-31T23:59:60Z"],
    ...["2027-01-02T03:04:61Z", "2027-01-02T03:04:05+24:00", "2027-01-02T03:04:05+02:60"],
    ...["2027-01-02T03:04:05+2", "2027-01-02T03:04:05 +02:00", "2027-01-02T03:04:05 UTC"],
    ...["9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "+010000-01-01T00:00:00Z"],
    ...["-000001-01-01T00:00:00Z", "infinity", "-infinity", "now", "tomorrow", "epoch"],
    ...["", " ", "x", "\u0000", "2027-01-02T03:04:05Z\u0000", "２027-01-02T03:04:05Z"],
    ...[0, 1767323045, 1767323045000, true, null, undefined, [], {}, ["2027-01-02T03:04:05Z"]],
    ...[inMs(1_827 * 86_400_000), "2027-01-02T03:04:05-99:99", "2027-1-2T3:4:5Z"],
    `2027-01-02T03:04:05.${"1".repeat(5_000)}Z`,
  ]);
});

Deno.test("leap days, offsets and fractions of a time that exists are accepted", async () => {
  const good = {
    "2028-02-29T00:00:00Z": "2028-02-29T00:00:00.000000Z",
    "2028-02-28T23:30:00-01:00": "2028-02-29T00:30:00.000000Z",
    "2028-01-01T00:00:00+14:00": "2027-12-31T10:00:00.000000Z",
    "2028-01-01T00:00:00.1Z": "2028-01-01T00:00:00.100000Z",
    "2028-01-01T00:00:00.123456Z": "2028-01-01T00:00:00.123456Z",
  };
  for (const [execute_at, expected] of Object.entries(good)) {
    for (const door of ofTimes) {
      const { status, text, json } = await asks[door](url, { execute_at });
      assert.equal(status, 202, text);
      assert.equal(json.execute_at, expected);
    }
  }
});

Deno.test("a unit has 1 to 64 of a-z, 0-9, dot, underline and hyphen", async () => {
  await refuses(ofPoints, "unit", [
    ...["", " ", "A", "Points", "po ints", "a:b", "a/b", "a%b", "ü", "pоints", "a\n", "\u0000"],
    ...["x".repeat(65), "🎫", "\ud800", 1, true, [], {}, ["points"], "points ", "*", ">"],
  ]);
});

Deno.test("user, reason, source and item are texts of 1 to 255 characters", async () => {
  const bad = [
    "",
    " \t",
    "x".repeat(256),
    "🎫".repeat(256),
    0,
    true,
    [],
    {},
    "\u001b[2J",
    "\ud800",
  ];
  await refuses(doors, "user_id", [undefined, null, ...bad]);
  await refuses(["grant", "spend", "reserveRight"], "reason", [undefined, null, ...bad]);
  await refuses(["grant", "spend"], "source_id", [undefined, null, ...bad]);
  await refuses(["reserve"], "reason", bad);
  await refuses(["reserve"], "source_id", bad);
  await refuses(["reserveRight"], "stock_keeping_unit", [undefined, null, ...bad]);
  await refuses(["reserveRight"], "purchase_id", [undefined, null, ...bad]);
  await refuses(["reserveRight"], "action", [undefined, null, "", "grant", "DELETE", 1, ["GRANT"]]);
});

Deno.test("255 characters are accepted, even if each is an emoji", async () => {
  const text = "🎫".repeat(255);
  const answers: Answer[] = [
    await reserve(url, { user_id: text, reason: text, source_id: text }, "k".repeat(243)),
    await grantPoints(url, { user_id: text, reason: text, source_id: text }, "g".repeat(255)),
    await reserveRight(url, { user_id: text, stock_keeping_unit: text, purchase_id: text }),
  ];
  for (const { status, text } of answers) assert.ok([200, 202].includes(status), text);
});

Deno.test("a missing key, body or object is refused at each door", async () => {
  await leavesNoTrace(async () => {
    for (const door of doors) {
      const to = url + paths[door];
      const without = await command(to, someBody[door], undefined);
      assertError(without, 400, "BAD_REQUEST", "Idempotency-Key is required");
      const long = await command(to, someBody[door], "k".repeat(256));
      assertError(long, 400, "BAD_REQUEST");
      assertError(await command(to, "", newKey()), 400, "BAD_REQUEST", "request body is required");
      for (const body of ["null", "[]", '"text"', "1", "{", "true", `[${JSON.stringify({})}]`]) {
        const refused = await command(to, body, newKey());
        assertError(refused, 400, "BAD_REQUEST", "request body is invalid");
      }
      assertError(await command(to, " ".repeat(20_000), newKey()), 413, "PAYLOAD_TOO_LARGE");
      const init = { method: "POST", headers: { "Idempotency-Key": "k" }, body: "x" };
      assertError(await call(to, init), 415, "UNSUPPORTED_MEDIA_TYPE");
    }
  });
});
