// who logs in becomes one user, however many first logins arrive at once, and the answer
// is what the account was at one moment.
import assert from "node:assert/strict";
import { withClient } from "../../tools/servers/asking.ts";
import { until } from "../../tools/servers/wait.ts";
import {
  type Account,
  resolve,
  type Resolved,
  send,
  startAccount,
  startReplica,
} from "../support/account.ts";
import { waitingForLocks } from "../support/locks.ts";

let account: Account;
Deno.test.beforeAll(async () => {
  account = await startAccount();
});
Deno.test.afterAll(() => account.close());

const provider = "https://issuer.example";

async function identityOf(subject: string): Promise<Record<string, unknown> | undefined> {
  const [found] = await account.rows<Record<string, unknown>>(
    "select email, email_verified from identities where provider = $1 and subject = $2",
    [provider, subject],
  );
  return found;
}

function withoutNew(all: Resolved[]): Omit<Resolved, "is_new">[] {
  return all.map(({ is_new: _, ...user }) => user);
}

Deno.test("A-101: 64 first logins of one identity at once lead to one user", async () => {
  await using place = await startAccount();
  await using replica = await startReplica(place);
  const identity = { provider, subject: "s-1", email: "ann@example.com" };
  const resolved = await Promise.all(
    Array.from({ length: 64 }, (_, i) => resolve(i % 2 ? place : replica, identity)),
  );
  const user_id = resolved[0]?.user_id;
  const expected = { user_id, account_status: "ACTIVE", roles: ["USER"], session_epoch: 1 };
  assert.deepEqual(withoutNew(resolved), resolved.map(() => expected));
  assert.equal(resolved.filter(({ is_new }) => is_new).length, 1);
  const rows = await place.rows(
    `select (select count(*)::int from users) as users,
       (select count(*)::int from identities) as identities,
       (select count(*)::int from account_roles) as roles,
       (select count(*)::int from audit_logs) as audit,
       (select count(*)::int from outbox_events) as events`,
  );
  assert.deepEqual(rows, [{ users: 1, identities: 1, roles: 1, audit: 1, events: 1 }]);
});

Deno.test("first logins of many identities at once lead to a user for each of them", async () => {
  const subjects = Array.from({ length: 64 }, (_, i) => `many-${i % 16}`);
  const resolved = await Promise.all(
    subjects.map((subject) => resolve(account, { provider, subject })),
  );
  const usersOf = Map.groupBy(resolved, (_, i) => subjects[i]);
  assert.equal(new Set(resolved.map(({ user_id }) => user_id)).size, 16);
  for (const users of usersOf.values()) {
    assert.equal(new Set(users.map(({ user_id }) => user_id)).size, 1);
    assert.equal(users.filter(({ is_new }) => is_new).length, 1);
  }
});

Deno.test("the same subject at two providers is two users", async () => {
  const [one, other] = await Promise.all(
    [provider, "https://other.example"].map((provider) =>
      resolve(account, { provider, subject: "same" })
    ),
  );
  assert.notEqual(one?.user_id, other?.user_id);
});

Deno.test("A-102: a known identity updates its email, and without one it stays", async () => {
  const logIn = (more: Record<string, unknown>) =>
    resolve(account, { provider, subject: "mail", ...more });
  const first = await logIn({ email: "old@example.com", email_verified: true, name: "Ann" });
  const again = await logIn({ email: "new@example.com", email_verified: true, name: "Bob" });
  assert.deepEqual([again.user_id, again.is_new], [first.user_id, false]);
  assert.deepEqual(await identityOf("mail"), { email: "new@example.com", email_verified: true });
  await logIn({});
  assert.deepEqual(await identityOf("mail"), { email: "new@example.com", email_verified: true });
  await logIn({ email: "newest@example.com" });
  assert.deepEqual(await identityOf("mail"), { email: "newest@example.com", email_verified: null });
  await logIn({ email: null });
  assert.deepEqual(await identityOf("mail"), { email: null, email_verified: null });
  const user = await send("GET", `${account.url}/v1/users/${first.user_id}`);
  assert.deepEqual([user.json.display_name, user.json.version], ["Ann", 1]);
});

Deno.test("a login that waits for a change gets the roles of the version in its answer", async () => {
  const identity = { provider, subject: "waits" };
  const { user_id } = await resolve(account, identity);
  const { headers, json } = await whileUncommitted(
    (owner) => [
      owner("update identities set email = 'x' where user_id = $1", [user_id]), // holds up the login
      owner("update users set version = 2 where user_id = $1", [user_id]),
      owner("insert into account_roles (user_id, role) values ($1, 'ADMIN')", [user_id]),
    ],
    identity,
  );
  assert.deepEqual([headers.get("ETag"), json.roles, json.is_new], [
    ...['"2"', ["USER", "ADMIN"], false],
  ]);
});

Deno.test("a login that waits for the first one gets the account as it is by then", async () => {
  const user_id = crypto.randomUUID();
  const { headers, json } = await whileUncommitted((owner) => [
    owner("insert into identities (provider, subject, user_id) values ($1, 'second', $2)", [
      ...[provider, user_id],
    ]),
    owner("insert into users (user_id, status, version) values ($1, 'SUSPENDED', 3)", [user_id]),
    owner("insert into account_roles (user_id, role) values ($1, 'SUPPORT')", [user_id]),
  ], { provider, subject: "second" });
  assert.equal(headers.get("ETag"), '"3"');
  assert.deepEqual(json, {
    ...{
      user_id,
      account_status: "SUSPENDED",
      roles: ["SUPPORT"],
      session_epoch: 1,
      is_new: false,
    },
  });
});

Deno.test("a login does not wait for a change of the account, and changes no row of it", async () => {
  const identity = { provider, subject: "free" };
  const { user_id } = await resolve(account, identity);
  await withClient(account.database.ownerUrl, async (owner) => {
    await owner.query("begin");
    await owner.query("update users set version = 2 where user_id = $1", [user_id]);
    assert.equal((await resolve(account, identity)).user_id, user_id);
    await owner.query("rollback");
  });
});

type Owner = (sql: string, values: unknown[]) => Promise<unknown>;

/** The answer to a login that began before the statements were committed, and waited for them. */
function whileUncommitted(
  statements: (owner: Owner) => Promise<unknown>[],
  identity: Record<string, unknown>,
) {
  return withClient(account.database.ownerUrl, async (owner) => {
    await owner.query("begin");
    await Promise.all(statements((sql, values) => owner.query(sql, values)));
    const login = send("POST", `${account.url}/v1/identities:resolve`, identity);
    await until("it waits", async () => await waitingForLocks(account.database.ownerUrl) === 1);
    await owner.query("commit");
    return await login;
  });
}
