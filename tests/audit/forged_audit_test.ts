// The role of the service can't write a forged history of an entitlement, and `ops audit verify`
// finds one that somebody else has written.
import assert from "node:assert/strict";
import { auditHash } from "../../entitlement/audit/hash.ts";
import { ask } from "../../tools/servers/asking.ts";
import { entitlement, openPlace, type Tampering } from "./audited.ts";
import { withClient } from "../support/databases.ts";
import { read } from "../support/pages.ts";
import { refuses } from "../database/refuses.ts";

interface Forged {
  at?: string;
  version?: number;
  previous?: string; // previous_at, previous_hash
  item?: string;
}

/** A row with a correct seal, for a change that never happened. */
const audited = (
  { at = "now()", version = 4, previous = "head.hashed_at, head.last_hash", item = "book" }: Forged,
): Tampering =>
(user) =>
  `insert into entitlement_audit
     (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
      caller, detail, salt, previous_at, previous_hash, hash)
   select *, ${auditHash("entry")}
   from (
     select gen_random_uuid() as audit_id, ${at} as occurred_at, '${user}' as user_id,
       '${item}' as stock_keeping_unit, 'GRANT' as action, 'gift' as source, 'p-9' as source_id,
       'key' as request_id, 'shop' as caller, '{"version": ${version}}'::jsonb as detail,
       gen_random_uuid() as salt, forged.*
     from (select) as one
     left join entitlements head on user_id = '${user}' and stock_keeping_unit = '${item}'
     cross join lateral (select ${previous}) as forged (previous_at, previous_hash)
   ) as entry`;

/** The same, with an entitlement that agrees with the row. */
const granted = (forged: Forged): Tampering => (user) =>
  `with audited as (${audited(forged)(user)} returning *)
   insert into entitlements
     (user_id, stock_keeping_unit, status, granted_at, source, source_id, version, updated_at,
      last_hash, hashed_at)
   select user_id, stock_keeping_unit, 'ACTIVE', occurred_at, source, source_id,
     (detail->>'version')::bigint, occurred_at, hash, occurred_at
   from audited
   on conflict (user_id, stock_keeping_unit) do update set
     status = excluded.status, source = excluded.source, source_id = excluded.source_id,
     version = excluded.version, updated_at = excluded.updated_at,
     last_hash = excluded.last_hash, hashed_at = excluded.hashed_at`;

const nothing = "null::timestamptz, null::bytea";

// Each user's book has three rows before the forgery. Without a kind, only the role of the service
// is refused.
const forgeries: [user: string, kind: string | undefined, sql: Tampering][] = [
  ["before-christ", "STRAY", audited({ at: "timestamptz '0044-03-15 BC'" })],
  ["from-eternity", "STRAY", audited({ at: "timestamptz '-infinity'" })],
  ["to-eternity", "STRAY", audited({ at: "timestamptz 'infinity'" })],
  ["in-the-future", "STRAY", audited({ at: "now() + interval '80 years'" })],
  ["already-in-the-future", "TIME", granted({ at: "now() + interval '80 years'" })],
  ["forward", "LINK", granted({ item: "film", previous: "now() + interval '1 day', sha256('x')" })],
  ["to-itself", "LINK", granted({ item: "film", previous: "now(), sha256('x')" })],
  ["begins-late", "VERSION", granted({ item: "film", version: 5, previous: nothing })],
  ["leaves-out", "VERSION", granted({ version: 9 })],
  ["doubled", "VERSION", granted({ version: 3 })],
  [
    "no-version",
    "VERSION",
    (user) =>
      granted({})(user).replace(`'{"version": 4}'`, `'{"versio": 4}'`)
        .replace("(detail->>'version')::bigint", "4"),
  ],
  ["begins-anew", "STRAY", granted({ version: 1, previous: nothing })],
  ["forked", "STRAY", audited({})],
  [
    "borrowed",
    "STRAY",
    (user) =>
      `${granted({ item: "film", version: 1, previous: nothing })(user)};
     update entitlements film set (last_hash, hashed_at, updated_at, status, source, source_id, version)
       = (select last_hash, hashed_at, updated_at, status, source, source_id, version from entitlements
          where user_id = '${user}' and stock_keeping_unit = 'book')
     where user_id = '${user}' and stock_keeping_unit = 'film'`,
  ],
  [
    "points-nowhere",
    "MISSING",
    (user) =>
      `update entitlements set last_hash = sha256('x'), hashed_at = updated_at - interval '1 hour',
       updated_at = updated_at - interval '1 hour'
     where user_id = '${user}'`,
  ],
  ["unaudited", "ENTITLEMENT", entitlement("status = 'REVOKED', revoked_at = now()")],
  ["given-away", "CHANGED", entitlement("user_id = 'somebody-else'")],
  [
    "backdated",
    undefined,
    granted({
      item: "film",
      version: 1,
      at: "now() - interval '1 hour'",
      previous: nothing,
    }),
  ],
];

Deno.test("the role of the service can't forge a history", async (t) => {
  await using place = await openPlace();
  for (const [user] of forgeries) await place.change(user, 3);
  await withClient(place.serviceUrl, async (service) => {
    for (const [user, , sql] of forgeries) await t.step(user, () => refuses(service, sql(user)));
  });
  const { code, problems } = await place.verify();
  assert.deepEqual([code, problems], [0, []]);
});

Deno.test("a history that somebody else has forged is found, and reported with its user", async (t) => {
  await using place = await openPlace();
  const [, statement = ""] = /```sql\n([^]*?);\n```/.exec(read("docs/audit.md")) ?? [];
  await place.change("honest", 3);
  for (const [user, kind, sql] of forgeries.filter(([, kind]) => kind !== undefined)) {
    await place.change(user, 3);
    // One forgery at a time, so that what is found belongs to it.
    await t.step(`${user}: ${kind}`, async () => {
      await ask(place.ownerUrl, sql(user));
      const { code, problems } = await place.verify();
      assert.equal(code, 1);
      const users = user === "given-away" ? [user, "somebody-else"] : [user];
      const found = problems.filter(({ user_id }) => users.includes(user_id));
      assert.ok(found.some((one) => one.kind === kind), `${found.map((one) => one.kind)}`);
      assert.deepEqual(found, problems, "of nobody else");
      const named = await ask<{ user_id: string }>(place.ownerUrl, statement);
      assert.ok(named.length > 0, "the statement of docs/audit.md finds nothing");
      assert.ok(named.every(({ user_id }) => users.includes(user_id)));
      for (const table of ["entitlements", "entitlement_audit"]) {
        await ask(place.ownerUrl, `delete from ${table} where user_id = any($1)`, [users]);
      }
    });
  }
  assert.equal((await place.verify()).code, 0);
  assert.deepEqual(await ask(place.ownerUrl, statement), []);
});
