// The audit of points is sealed like that of entitlements: each balance has a chain of its own.
import assert from "node:assert/strict";
import { auditHash } from "../../entitlement/audit/hash.ts";
import { ask } from "../../tools/servers/asking.ts";
import { withClient } from "../support/databases.ts";
import { read } from "../support/pages.ts";
import { append, appendPoints, change } from "./appended.ts";
import { noRow, ofUser, openPlace, type Place, row, type Tampering } from "./audited.ts";

const [, statement = ""] = /```sql\n([^]*?);\n```/.exec(read("docs/audit.md")) ?? [];

async function give(place: Place, user_id: string, times: number): Promise<void> {
  const entries = Array.from({ length: times }, (_, i) => ({
    user_id,
    version: i + 1,
    balance: (i + 1) * 10,
  }));
  await withClient(place.serviceUrl, (service) => service.query(appendPoints(entries)));
}

Deno.test("chains of points are verified, over many pages and long chains", async () => {
  await using place = await openPlace();
  await withClient(place.serviceUrl, async (service) => {
    const users = Array.from({ length: 130 }, (_, i) => ({ user_id: `user-${i}` }));
    await service.query(appendPoints(users.map((user) => user)));
    await service.query(append({ ...change, user_id: "user-1" }));
  });
  await give(place, "ann", 430);
  const verified = await place.verify();
  assert.deepEqual(
    [verified.entitlements, verified.balances, verified.rows, verified.problems],
    [1, 131, 561, []],
  );
  const ofOne = await place.verify("--user", "user-1");
  assert.deepEqual([ofOne.entitlements, ofOne.balances, ofOne.rows, ofOne.code], [1, 1, 2, 0]);
});

const root = (set: string): Tampering => (user) =>
  `update point_root set ${set} where user_id = '${user}'`;

const sealed = (version: number) => row(version, `hash = ${auditHash("entitlement_audit")}`);

/** Makes the last row follow this one, and all hashes agree with that. */
const relinked = (version: number): Tampering => (user) =>
  `update entitlement_audit later
   set previous_hash = earlier.hash, previous_at = earlier.occurred_at
   from entitlement_audit earlier
   where later.user_id = '${user}' and earlier.user_id = '${user}'
     and later.detail->>'version' = '3' and earlier.detail->>'version' = '${version}';
   ${sealed(3)(user)};
   update point_root set last_hash = (select hash from entitlement_audit ${ofUser(user, 3)})
   where user_id = '${user}'`;

/** Changes a row, and makes all hashes of the chain agree with it. */
const resealed = (version: number, set: string): Tampering => (user) =>
  `${row(version, set)(user)}; ${sealed(version)(user)}; ${relinked(2)(user)}`;

const amount = (n: number) => `detail = detail || '{"point_amount": ${n}}'`;

// Each user has three transactions of 10 points before the tampering.
const tamperings: [user: string, kind: string, sql: Tampering][] = [
  ["amount", "CHANGED", row(2, amount(99))],
  ["action", "CHANGED", row(2, "action = 'GRANT'")],
  ["reason", "CHANGED", row(2, "source = 'gift'")],
  ["first", "CHANGED", row(1, "source = 'gift'")],
  ["gone", "MISSING", noRow(2)],
  ["gone-first", "MISSING", noRow(1)],
  ["gone-last", "MISSING", noRow(3)],
  ["unhashed", "HASH_REMOVED", row(2, "hash = null")],
  ["richer", "BALANCE", root("balance = 1000000")],
  ["counted", "BALANCE", root("version = 4")],
  ["behind", "REPLACED", root("last_hash = sha256('x')")],
  ["touched", "MISSING", root("updated_at = updated_at + interval '1 us'")],
  ["deleted", "STRAY", (user) => `delete from point_root where user_id = '${user}'`],
  ["renamed", "CHANGED", root("unit = 'silver'")],
  ["added-up", "BALANCE", resealed(2, amount(11))],
  ["begun", "BALANCE", resealed(1, amount(11))],
  ["taken", "BALANCE", resealed(2, "action = 'POINTS_TAKE'")],
  ["no-balance", "BALANCE", resealed(2, "detail = detail - 'balance'")],
  ["leaves-out", "VERSION", resealed(2, `detail = detail || '{"version": 7}'`)],
  ["skipped", "VERSION", (user) => `${noRow(2)(user)}; ${relinked(1)(user)}`],
  [
    "begins-late",
    "VERSION",
    (user) => `${noRow(1)(user)}; ${resealed(2, "previous_at = null, previous_hash = null")(user)}`,
  ],
  ["copied", "STRAY", (user) =>
    `insert into entitlement_audit
     select gen_random_uuid(), occurred_at + interval '1 us', user_id, stock_keeping_unit, action,
       'gift', 'p-9', 'key', detail, caller, salt, previous_hash, previous_at, hash
     from entitlement_audit ${ofUser(user, 3)}`],
];

Deno.test("each way to tamper with points is found, and reported with its user", async (t) => {
  await using place = await openPlace();
  for (const [user] of tamperings) await give(place, user, 3);
  await give(place, "honest", 3);
  assert.equal((await place.verify()).code, 0);
  assert.deepEqual(await ask(place.ownerUrl, statement), []);
  for (const [user, , sql] of tamperings) await ask(place.ownerUrl, sql(user));
  const { code, problems } = await place.verify();
  assert.equal(code, 1);
  const named = await ask<{ user_id: string }>(place.ownerUrl, statement);
  for (const [user, kind] of tamperings) {
    await t.step(`${user}: ${kind}`, () => {
      const kinds = problems.filter((one) => one.user_id === user).map((one) => one.kind);
      assert.ok(kinds.includes(kind), `${kinds}`);
      assert.ok(named.some(({ user_id }) => user_id === user), "not found by docs/audit.md");
    });
  }
  assert.ok(problems.every(({ user_id }) => user_id !== "honest"));
  assert.ok(named.every(({ user_id }) => user_id !== "honest"));
});

Deno.test("the statement of docs/audit.md also compares the transactions with the audit", async () => {
  await using place = await openPlace();
  for (const user of ["gone", "more", "honest"]) await give(place, user, 3);
  await ask(
    place.ownerUrl,
    "delete from point_transactions where user_id = 'gone' and version = 2",
  );
  await ask(
    place.ownerUrl,
    "update point_transactions set point_amount = 99 where user_id = 'more' and version = 2",
  );
  const users = (await ask<{ user_id: string }>(place.ownerUrl, statement)).map((one) =>
    one.user_id
  );
  assert.deepEqual(users.sort(), ["gone", "more"]);
});

// The rows of both have the same user and the same stock keeping unit.
Deno.test("a right that is named like a balance has a chain of its own", async (t) => {
  await using place = await openPlace();
  const named = { ...change, stock_keeping_unit: "points:gold" };
  const users = ["honest", "balance-of-right", "right-of-balance", "as-points"];
  for (const user_id of users) {
    await withClient(place.serviceUrl, async (service) => {
      await service.query(append({ ...named, user_id }));
      await service.query(appendPoints([{ user_id }]));
      await service.query(append({ ...named, user_id, action: "REVOKE", version: 2 }));
      await service.query(appendPoints([{ user_id, version: 2, balance: 20 }]));
    });
  }
  const { code, entitlements, balances, rows } = await place.verify();
  assert.deepEqual([code, entitlements, balances, rows], [0, 4, 4, 16]);
  assert.deepEqual(await ask(place.ownerUrl, statement), []);

  const lastOf = (user: string, action: string) =>
    `(select occurred_at, hash from entitlement_audit
      where user_id = '${user}' and action = '${action}' order by occurred_at desc limit 1)`;
  await ask(
    place.ownerUrl,
    `update point_root set (updated_at, last_hash) = ${lastOf("balance-of-right", "REVOKE")}
     where user_id = 'balance-of-right'`,
  );
  await ask(
    place.ownerUrl,
    `update entitlements set (hashed_at, last_hash) = ${lastOf("right-of-balance", "POINTS_ADD")}
     where user_id = 'right-of-balance'`,
  );
  await ask(
    place.ownerUrl,
    "update entitlement_audit set action = 'POINTS_TAKE' where user_id = 'as-points' and action = 'REVOKE'",
  );
  const { problems } = await place.verify();
  const found = await ask<{ user_id: string }>(place.ownerUrl, statement);
  for (const user of users) {
    await t.step(user, () => {
      const kinds = problems.filter(({ user_id }) => user_id === user).map(({ kind }) => kind);
      const isWrong = user !== "honest";
      assert.equal(kinds.includes("CHANGED"), isWrong, `${kinds}`);
      assert.equal(found.some(({ user_id }) => user_id === user), isWrong);
    });
  }
});

Deno.test("an anchor covers the chains of points", async () => {
  await using place = await openPlace();
  await give(place, "ann", 2);
  const { anchor } = await place.verify("--anchor");
  await withClient(place.serviceUrl, async (service) => {
    await service.query(appendPoints([{ version: 3, balance: 30 }]));
    await service.query(appendPoints([{ user_id: "bob" }]));
  });
  assert.equal((await place.verify("--against", anchor)).code, 0);
  await ask(place.ownerUrl, resealed(2, "source = 'gift'")("ann"));
  const { code, problems } = await place.verify("--against", anchor);
  assert.deepEqual([code, problems], [1, []]);
});
