// The audit is sealed: `ops audit verify` finds what was changed, removed or added by hand.
import assert from "node:assert/strict";
import { auditHash, personDigest } from "../../entitlement/audit/hash.ts";
import { grant } from "../support/api.ts";
import { ask } from "../../tools/servers/asking.ts";
import {
  age,
  entitlement,
  lastHashOf,
  noRow,
  ofUser,
  openPlace,
  row,
  type Tampering,
} from "./audited.ts";
import { read } from "../support/pages.ts";
import { runCommand } from "../operators/runbook.ts";

Deno.test("an audit that nobody has changed is verified, over many pages and long chains", async () => {
  await using place = await openPlace();
  const users = Array.from({ length: 230 }, (_, i) => `user-${i}`);
  await Promise.all(users.map((user_id) => grant(place.url, { user_id })));
  await place.change("ann", 430);
  const verified = await place.verify();
  assert.deepEqual(
    [verified.entitlements, verified.rows, verified.unhashed, verified.problems],
    [231, 660, 0, []],
  );
  assert.equal(verified.code, 0);
  const ofAnn = await place.verify("--user", "ann");
  assert.deepEqual([ofAnn.entitlements, ofAnn.rows, ofAnn.code], [1, 430, 0]);
});

// Each user has three rows before the tampering.
const tamperings: [user: string, kind: string, sql: Tampering][] = [
  ["who", "CHANGED", row(2, "user_id = 'eve'")],
  ["item", "CHANGED", row(2, "stock_keeping_unit = 'film'")],
  ["action", "CHANGED", row(2, "action = 'GRANT'")],
  ["reason", "CHANGED", row(2, "source = 'gift'")],
  ["purchase", "CHANGED", row(2, "source_id = 'p-2'")],
  ["request", "CHANGED", row(2, "request_id = 'other'")],
  ["caller", "CHANGED", row(2, "caller = 'shop'")],
  ["nobody", "CHANGED", row(2, "caller = null")],
  ["detail", "CHANGED", row(2, `detail = detail || '{"x": 1}'`)],
  ["version", "CHANGED", row(2, `detail = detail || '{"version": "x"}'`)],
  ["salt", "CHANGED", row(2, "salt = gen_random_uuid()")],
  ["hash", "CHANGED", row(2, "hash = sha256('x')")],
  ["first", "CHANGED", row(1, "source = 'gift'")],
  ["last", "CHANGED", row(3, "source = 'gift'")],
  ["link", "CHANGED", row(3, "previous_hash = sha256('x')")],
  ["cut", "CHANGED", row(3, "previous_at = null, previous_hash = null")],
  ["ring", "CHANGED", row(2, "previous_at = occurred_at, previous_hash = hash")],
  ["headless", "STRAY", entitlement("last_hash = null")],
  ["time", "MISSING", row(2, "occurred_at = occurred_at + interval '1 us'")],
  ["gone", "MISSING", noRow(2)],
  ["gone-first", "MISSING", noRow(1)],
  ["gone-last", "MISSING", noRow(3)],
  ["unhashed", "HASH_REMOVED", row(2, "hash = null")],
  ["swapped", "CHANGED", (user) =>
    `update entitlement_audit one
     set detail = other.detail, request_id = other.request_id, salt = other.salt, hash = other.hash
     from entitlement_audit other
     where one.user_id = '${user}' and other.user_id = '${user}'
       and (one.detail->>'version')::int + (other.detail->>'version')::int = 3`],
  ["state", "ENTITLEMENT", entitlement("status = 'REVOKED', revoked_at = now()")],
  ["bought", "ENTITLEMENT", entitlement("source_id = 'p-2'")],
  ["counted", "ENTITLEMENT", entitlement("version = 4")],
  ["behind", "REPLACED", entitlement("last_hash = sha256('x')")],
  ["touched", "MISSING", entitlement("updated_at = now()")],
  ["forgotten", "STRAY", entitlement("last_hash = null, hashed_at = null")],
  ["deleted", "STRAY", (user) => `delete from entitlements where user_id = '${user}'`],
  ["added", "STRAY", (user) =>
    `insert into entitlement_audit
     select gen_random_uuid(), occurred_at + interval '1 us', user_id, stock_keeping_unit, 'GRANT',
       'gift', 'p-9', 'key', detail, caller, salt, previous_hash, previous_at, hash
     from entitlement_audit ${ofUser(user, 3)}`],
];

Deno.test("each way to tamper with the audit is found, and reported with its user", async (t) => {
  await using place = await openPlace();
  for (const [user] of tamperings) await place.change(user, 3);
  await place.change("honest", 3);
  assert.equal((await place.verify()).code, 0);
  for (const [user, , sql] of tamperings) await ask(place.ownerUrl, sql(user));
  const { code, problems } = await place.verify();
  assert.equal(code, 1);
  for (const [user, kind] of tamperings) {
    await t.step(`${user}: ${kind}`, () => {
      const kinds = problems.filter((one) => one.user_id === user).map((one) => one.kind);
      assert.ok(kinds.includes(kind), `${kinds}`);
    });
  }
  assert.deepEqual(problems.filter(({ user_id }) => user_id === "honest"), []);
  for (const user of ["who", "gone", "state"]) {
    assert.equal((await place.verify("--user", user)).code, 1, user);
  }
  const section = "The audit is not what was written";
  const settings = { ENTITLEMENT_HTTP_PORT: new URL(place.url).port, USER_ID: "purchase" };
  assert.match(
    await runCommand(section, 0, settings, 1),
    /^The audit was changed: \d+ problems found/m,
  );
  assert.match(await runCommand(section, 1, settings, 1), /^CHANGED .* purchase +book +2 /m);
});

Deno.test("a row that was added is found though all chains are complete", async () => {
  await using place = await openPlace();
  await place.change("ann", 3);
  const [, , added] = tamperings.find(([user]) => user === "added") ?? [];
  await ask(place.ownerUrl, added?.("ann") ?? "");
  const { code, problems } = await place.verify();
  assert.deepEqual([code, problems.map(({ kind }) => kind)], [1, ["STRAY"]]);
});

Deno.test("rows that look erased are found if no operation on record has erased them", async () => {
  await using place = await openPlace();
  await place.change("ann", 2);
  const operation = crypto.randomUUID();
  const masked = `user_id = 'erased-${operation}'`;
  for (const version of [1, 2]) {
    const digest = personDigest("entitlement_audit");
    await ask(place.ownerUrl, row(version, `${masked}, erased = ${digest}, salt = null`)("ann"));
  }
  await ask(place.ownerUrl, entitlement(masked)("ann"));
  const record = (kind: string, layer: string) =>
    ask(
      place.ownerUrl,
      `insert into operations (operation_id, kind, layer, who, reason, items)
       values ($1, $2, $3, 'kim', 'r', '[]')
       on conflict (operation_id) do update set kind = excluded.kind, layer = excluded.layer`,
      [operation, kind, layer],
    );
  await record("REPLAY", "outbox");
  const { problems } = await place.verify();
  assert.deepEqual(problems.map(({ kind }) => kind), Array(2).fill("ERASED_UNRECORDED"));
  await record("ERASE_USER", "user");
  const { code, erased } = await place.verify();
  assert.deepEqual([code, erased], [0, 2]);
});

Deno.test("the statement of docs/audit.md finds the same without the service", async () => {
  await using place = await openPlace();
  const [, statement = ""] = /```sql\n([^]*?);\n```/.exec(read("docs/audit.md")) ?? [];
  const found = () => ask<{ user_id: string }>(place.ownerUrl, statement);
  for (const user of ["gone", "reason", "honest"]) await place.change(user, 3);
  assert.deepEqual(await found(), []);
  await ask(place.ownerUrl, noRow(1)("gone"));
  await ask(place.ownerUrl, row(2, "source = 'gift'")("reason"));
  const users = new Set((await found()).map(({ user_id }) => user_id));
  assert.deepEqual([...users].sort(), ["gone", "reason"]);
});

Deno.test("rows of the previous release are counted as unhashed, and a removed hash is a problem", async () => {
  await using place = await openPlace();
  await place.asBefore("ann", 1); // before there were chains
  await place.asBefore("bob", 1);
  await place.change("ann", 2, 2);
  await place.asBefore("ann", 4); // during a rolling update
  await place.change("ann", 1, 5);
  await place.asBefore("ann", 6);
  const verified = await place.verify();
  assert.deepEqual([verified.rows, verified.unhashed, verified.problems], [3, 4, []]);
  assert.equal(verified.code, 0);
  const marksOf = async (path: string) => {
    const url = `${place.url}/debug/entitlement/audit/${path}?before=${verified.before}`;
    return (await (await fetch(url)).json()).marks;
  };
  assert.equal(await marksOf("rows"), await marksOf("chains")); // else all rows are searched
  await ask(place.ownerUrl, row(3, "hash = null")("ann"));
  const [problem] = (await place.verify()).problems;
  assert.deepEqual([problem?.kind, problem?.version], ["HASH_REMOVED", 3]);
});

Deno.test("a row without a hash from long after the update is a problem", async () => {
  await using place = await openPlace();
  await place.asBefore("ann", 1);
  await place.change("bob", 1);
  await ask(
    place.ownerUrl,
    "update schema_migrations set applied_at = now() - interval '25 hours' where version = 6",
  );
  const { problems, code } = await place.verify();
  assert.equal(code, 1);
  assert.deepEqual(problems.map(({ kind, user_id }) => [kind, user_id]), [
    ["UNHASHED", "ann"],
    ["UNHASHED", "ann"], // once for the entitlement and once for the row
  ]);
});

Deno.test("a chain may begin after dropped partitions, and not after partitions that still exist", async () => {
  await using place = await openPlace();
  for (const user of ["ann", "bob"]) {
    await place.change(user, 2);
    await age(place.ownerUrl, user, "20 months");
  }
  assert.equal((await place.verify()).code, 0);
  await age(place.ownerUrl, "bob", "6 months");
  const [kept] = await ask<{ partition: string }>(
    place.ownerUrl,
    `select tableoid::regclass::text as partition
     from entitlement_audit where user_id = 'bob' and detail->>'version' = '1'`,
  );
  await ask(place.serviceUrl, "select drop_audit_partitions(13)");
  const { code, rows } = await place.verify();
  assert.deepEqual([code, rows], [0, 3]);
  await ask(place.ownerUrl, `drop table ${kept?.partition}`);
  const { problems } = await place.verify();
  assert.deepEqual(problems.map(({ kind, user_id }) => [kind, user_id]), [["MISSING", "bob"]]);
});

Deno.test("an anchor that was kept elsewhere shows that the owner has written chains anew", async () => {
  await using place = await openPlace();
  for (const user of ["ann", "bob"]) await place.change(user, 2);
  const { anchor } = await place.verify("--anchor");
  await place.change("ann", 1, 3);
  await place.change("cid", 1);
  assert.equal((await place.verify("--against", anchor)).code, 0);
  await ask(place.ownerUrl, row(2, "request_id = 'another'")("bob"));
  assert.equal((await place.verify()).code, 1);
  await ask(place.ownerUrl, row(2, `hash = ${auditHash("entitlement_audit")}`)("bob"));
  await ask(place.ownerUrl, lastHashOf("bob"));
  assert.equal((await place.verify()).code, 0, "a chain can't show that");
  const { code, problems } = await place.verify("--against", anchor);
  assert.deepEqual([code, problems], [1, []]);
});
