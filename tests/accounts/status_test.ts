// suspended once, however often and from wherever it is asked for, and never without an ADMIN.
import assert from "node:assert/strict";
import type { ServiceProcess } from "../../tools/servers/service_process.ts";
import { type Account, resolve, send, startAccount, startReplica } from "../support/account.ts";
import { type Answer, assertError } from "../support/api.ts";

let account: Account;
let replica: ServiceProcess;
Deno.test.beforeAll(async () => {
  account = await startAccount();
  replica = await startReplica(account);
});
Deno.test.afterAll(async () => {
  await replica.kill();
  await account.close();
});

async function newUser(...roles: string[]): Promise<string> {
  const { user_id } = await resolve(account, { provider: "p", subject: crypto.randomUUID() });
  if (roles.length > 0) {
    assert.equal((await setRoles(user_id, roles)).status, 200);
  }
  return user_id;
}

// Each request goes to another replica than the one before it.
let sent = 0;
const next = () => sent++ % 2 ? account.url : replica.url;
const suspend = (user: string) =>
  send("POST", `${next()}/v1/users/${user}:suspend`, { reason: "spam" });
const resume = (user: string) =>
  send("POST", `${next()}/v1/users/${user}:resume`, { reason: "a mistake" });
const setRoles = (user: string, roles: string[]) =>
  send("PUT", `${next()}/v1/users/${user}/roles`, { roles });

const actionsOf = async (user: string) =>
  (await account.rows<{ action: string; reason: string | null }>(
    "select action, reason from audit_logs where user_id = $1 order by occurred_at",
    [user],
  )).map(({ action, reason }) => reason ? `${action} ${reason}` : action);
const eventsOf = async (user: string) =>
  (await account.rows<{ event_type: string }>(
    "select event_type from outbox_events where aggregate_key = $1 order by created_at",
    [user],
  )).map(({ event_type }) => event_type);

async function activeAdmins(): Promise<number> {
  const rows = await account.rows(
    `select from account_roles join users using (user_id)
     where role = 'ADMIN' and status = 'ACTIVE'`,
  );
  return rows.length;
}

async function withoutAdmins(): Promise<void> {
  await account.rows("delete from account_roles where role = 'ADMIN'");
}

const isLastAdmin = (answer: Answer) =>
  assertError(answer, 409, "LAST_ADMIN", "the user is the last ADMIN");

Deno.test("A-104: suspended by 20 requests at once and resumed by 20, it has one audit row and one event of each", async () => {
  const user = await newUser();
  const twenty = Array.from({ length: 20 });
  const suspended = await Promise.all(twenty.map(() => suspend(user)));
  const resumed = await Promise.all(twenty.map(() => resume(user)));
  for (const { status, text } of [...suspended, ...resumed]) {
    assert.deepEqual([status, text], [204, ""]);
  }
  assert.deepEqual(await actionsOf(user), ["REGISTER", "SUSPEND spam", "RESUME a mistake"]);
  assert.deepEqual(await eventsOf(user), ["UserRegistered", "UserSuspended", "UserResumed"]);
  const { json } = await send("GET", `${account.url}/v1/users/${user}`);
  assert.deepEqual([json.status, json.version], ["ACTIVE", 3]);
});

Deno.test("a suspended user logs in and learns that the account is suspended", async () => {
  const identity = { provider: "p", subject: "suspended" };
  const { user_id } = await resolve(account, identity);
  await suspend(user_id);
  const again = await resolve(account, identity);
  assert.deepEqual([again.account_status, again.user_id, again.is_new], [
    ...["SUSPENDED", user_id, false],
  ]);
});

Deno.test("A-104: the last ADMIN is neither suspended nor loses the role", async () => {
  await withoutAdmins();
  const last = await newUser("ADMIN");
  isLastAdmin(await suspend(last));
  for (const roles of [[], ["USER"], ["USER", "SUPPORT"]]) isLastAdmin(await setRoles(last, roles));
  assert.equal((await setRoles(last, ["ADMIN", "USER"])).status, 200); // keeps it
  const sleeping = await newUser("ADMIN");
  assert.equal((await suspend(sleeping)).status, 204);
  isLastAdmin(await suspend(last)); // a suspended ADMIN does not count
  assert.equal((await setRoles(sleeping, ["USER"])).status, 200); // and may lose the role
  assert.equal((await setRoles(await newUser(), ["ADMIN"])).status, 200);
  assert.equal((await suspend(last)).status, 204);
  assert.equal(await activeAdmins(), 1);
});

Deno.test("A-104: a suspended user gets and loses the role ADMIN, also without any other", async () => {
  await withoutAdmins();
  const user = await newUser();
  assert.equal((await suspend(user)).status, 204);
  assert.equal((await setRoles(user, ["ADMIN"])).status, 200);
  assert.equal(await activeAdmins(), 0);
  assert.equal((await setRoles(user, ["USER"])).status, 200);
});

Deno.test("A-104: of many ADMINS who are suspended or lose the role at once, one stays", async () => {
  for (let round = 0; round < 5; round++) {
    await withoutAdmins();
    const admins = await Promise.all(Array.from({ length: 6 }, () => newUser("USER", "ADMIN")));
    const answers = await Promise.all(
      admins.map((user, i) => i % 2 ? suspend(user) : setRoles(user, ["USER"])),
    );
    assert.equal(await activeAdmins(), 1);
    const refused = answers.filter(({ status }) => status === 409);
    assert.equal(refused.length, 1);
    refused.forEach(isLastAdmin);
  }
});

Deno.test("roles are set as a whole, in their order, and setting the same changes nothing", async () => {
  const user = await newUser();
  const shown = async (roles: string[]) => {
    const { status, json, headers } = await setRoles(user, roles);
    assert.deepEqual([status, headers.get("ETag")], [200, `"${json.version}"`]);
    return [json.roles, json.version];
  };
  const given = ["ADMIN", "USER", "ADMIN", "SUPPORT"];
  assert.deepEqual(await shown(given), [["USER", "SUPPORT", "ADMIN"], 2]);
  assert.deepEqual(await shown(["SUPPORT", "ADMIN", "USER"]), [["USER", "SUPPORT", "ADMIN"], 2]);
  await newUser("ADMIN");
  assert.deepEqual(await shown([]), [[], 3]);
  assert.deepEqual(await eventsOf(user), ["UserRegistered", "RolesChanged", "RolesChanged"]);
  const [row] = await account.rows(
    "select detail from audit_logs where user_id = $1 and action = 'CHANGE_ROLES' order by version",
    [user],
  );
  assert.deepEqual(row, { detail: { before: ["USER"], after: ["USER", "SUPPORT", "ADMIN"] } });
});

Deno.test("the audit of an account is listed in pages, the newest first", async () => {
  const user = await newUser();
  for (let i = 0; i < 4; i++) await (i % 2 ? resume(user) : suspend(user));
  const path = `${account.url}/v1/users/${user}/audit?limit=2`;
  const found = [];
  let cursor: string | undefined;
  do {
    const { json } = await send("GET", cursor ? `${path}&cursor=${cursor}` : path);
    found.push(json.audit.map(({ action, version }: Record<string, unknown>) => [action, version]));
    cursor = json.next_cursor;
  } while (cursor);
  assert.deepEqual(found, [
    [["RESUME", 5], ["SUSPEND", 4]],
    [["RESUME", 3], ["SUSPEND", 2]],
    [["REGISTER", 1]],
  ]);
});
