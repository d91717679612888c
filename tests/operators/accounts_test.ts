// Operators find accounts, change them and erase users; each change is in the audit with who made it
// and why.
import assert from "node:assert/strict";
import { newClient, tokensOf } from "../support/access.ts";
import { type Account, post, resolve, send, startAccount } from "../support/account.ts";
import { assertError, call, grant } from "../support/api.ts";
import { untilSent } from "../support/notification.ts";
import { look, startStack } from "../support/stack.ts";
import { ask } from "../../tools/servers/asking.ts";
import { until } from "../../tools/servers/wait.ts";
import { runOps } from "./ops.ts";

const debug = { ACCOUNT_DEBUG_ENABLED: "true" };
const ann = {
  ...{ provider: "https://issuer.example", subject: "s-ann", name: "Ann Secret" },
  ...{ email: "Ann.Secret@example.com", email_verified: true },
};
const nowhere = { url: "http://127.0.0.1:1" };

const without = ["--without", "entitlement,notification,gateway,matchmaking"];
const ops = (account: { url: string }, ...args: string[]) =>
  runOps("ops/ops.ts", { account }, [...args, ...without]);

const withRoles = (account: Account, user_id: string, roles: string[]) =>
  send("PUT", `${account.url}/v1/users/${user_id}/roles`, { roles });

const stateOf = async ({ url }: Account, user_id: string) =>
  (await call(`${url}/v1/sessions/${crypto.randomUUID()}?user_id=${user_id}`, {})).json;

Deno.test("an account is found by its id, its email and its identity, and no email is shown", async () => {
  await using account = await startAccount(debug);
  const { user_id } = await resolve(account, ann);
  await resolve(account, { provider: ann.provider, subject: "s-bob", email: "bob@example.com" });
  const searches = [
    [user_id],
    [user_id.toUpperCase()],
    ["--email", "ann.secret@EXAMPLE.com"],
    ["--provider", ann.provider, "--subject", "s-ann"],
  ];
  for (const search of searches) {
    const { code, output, errors } = await ops(account, "accounts", ...search);
    assert.equal(code, 0, errors);
    assert.match(output, new RegExp(`^account +${user_id}$`, "m"));
    assert.match(output, /^name +Ann Secret$[^]*^status +ACTIVE$[^]*^roles +USER$/m);
    assert.match(output, /^https:\/\/issuer\.example +s-ann +verified +/m);
    assert.match(output, / REGISTER +/);
    assert.doesNotMatch(output, /example\.com/i);
  }
  for (const search of [[crypto.randomUUID()], ["ann"], ["--email", "eve@example.com"]]) {
    const { code, output } = await ops(account, "accounts", ...search);
    assert.deepEqual([code, output], [1, "There is no such account.\n"]);
  }
  for (const search of [[], [user_id, "--email", "a"], ["--provider", "p"]]) {
    const { code, errors } = await ops(account, "accounts", ...search);
    assert.equal(code, 2);
    assert.match(errors, /exactly one of user_id, email, provider and subject is required/);
  }
});

Deno.test("an account is suspended, resumed, given roles and logged out, once each, with who and why", async () => {
  await using account = await startAccount(debug);
  const { user_id } = await resolve(account, ann);
  const commands = [
    [["suspend", user_id], /^The user was suspended\.$/m, { account_status: "SUSPENDED" }],
    [["resume", user_id], /^The user was resumed\.$/m, { account_status: "ACTIVE" }],
    [["roles", user_id, "ADMIN", "USER"], /given the roles/, { roles: ["USER", "ADMIN"] }],
    [["end-sessions", user_id], /logged out everywhere\.$/m, { session_epoch: 2 }],
  ] as const;
  for (const [words, said, expected] of commands) {
    const run = (...args: string[]) => ops(account, "accounts", ...words, ...args);
    const before = await stateOf(account, user_id);
    const dry = await run("--dry-run");
    assert.deepEqual([dry.code, /^The user would be /.test(dry.output)], [0, true], dry.errors);
    assert.deepEqual(await stateOf(account, user_id), before);
    assert.equal((await run()).code, 2, "a reason is required");
    const { code, output, errors } = await run("--reason", "case 7");
    assert.equal(code, 0, errors);
    assert.match(output, said);
    assert.partialDeepStrictEqual(await stateOf(account, user_id), expected);
    if (words[0] !== "end-sessions") {
      assert.equal((await run("--reason", "again")).output, "Nothing to change.\n");
    }
  }
  const rows = await account.rows(
    "select action, actor, reason from audit_logs where action <> 'REGISTER' order by occurred_at",
  );
  assert.deepEqual(
    rows,
    ["SUSPEND", "RESUME", "CHANGE_ROLES", "END_SESSIONS"].map((action) => ({
      ...{ action, actor: "kim", reason: "case 7" },
    })),
  );
  await until("the events are published", async () => {
    const left = await account.rows("select from outbox_events where status <> 'PUBLISHED'");
    return left.length === 0;
  });
  const timeline = await ops(account, "timeline", "--user", user_id);
  assert.equal(timeline.code, 0, timeline.errors);
  assert.match(timeline.output, / SessionsEnded +PUBLISHED$/m);
  assert.match(timeline.output, / VERSION +TYPE +ACCOUNT$/m);
  const unknown = await ops(account, "accounts", "suspend", "nobody", "--reason", "r");
  assert.deepEqual([unknown.code, unknown.output], [1, "There is no such account.\n"]);
});

Deno.test("the last ADMIN is neither suspended nor erased nor loses the role", async () => {
  await using account = await startAccount(debug);
  const { user_id } = await resolve(account, ann);
  await withRoles(account, user_id, ["USER", "ADMIN"]);
  const before = await stateOf(account, user_id);
  for (const words of [["suspend", user_id], ["roles", user_id, "USER"]]) {
    for (const dry of [["--dry-run"], ["--reason", "r"]]) {
      const { code, errors } = await ops(account, "accounts", ...words, ...dry);
      assert.deepEqual([code, errors], [1, "account: the user is the last ADMIN\n"]);
    }
  }
  for (const dry_run of [true, false]) {
    const body = { user_id, who: "kim", reason: "r", dry_run };
    const refused = await post(`${account.url}/operations/account/erase-user`, body);
    assertError(refused, 409, "LAST_ADMIN", "the user is the last ADMIN");
  }
  assert.deepEqual(await stateOf(account, user_id), before);
  const bob = await resolve(account, { provider: "p", subject: "bob" });
  await withRoles(account, bob.user_id, ["ADMIN"]);
  const { code } = await ops(account, "accounts", "suspend", user_id, "--reason", "r");
  assert.equal(code, 0);
});

Deno.test("only who may change accounts may search for them and change them here", async () => {
  const [operator, support] = [
    newClient("kim", "debug:read", "operations:write"),
    newClient("eve", "accounts:admin"),
  ];
  await using account = await startAccount({ ...debug, ...tokensOf(operator, support) });
  for (
    const path of [
      ...["debug/account/find", "operations/account/suspend", "operations/account/resume"],
      ...["operations/account/roles", "operations/account/end-sessions"],
    ]
  ) {
    const body = { user_id: crypto.randomUUID(), who: "nobody", reason: "r", roles: [] };
    const asked = (token: string) =>
      post(`${account.url}/${path}`, body, { Authorization: `Bearer ${token}` });
    assertError(await asked(operator.token), 403, "FORBIDDEN");
    assert.equal((await asked(support.token)).status, 200, path);
  }
});

Deno.test("nothing of the person is left of a user who was erased, whose sessions have ended", async () => {
  await using account = await startAccount(debug);
  const { user_id } = await resolve(account, ann);
  const path = `${account.url}/v1/users/${user_id}`;
  await send("PATCH", path, { locale: "de-CH-secret" });
  await account.rows("update users set picture = 'https://secret.example/ann.png'");
  await post(`${path}:suspend`, { reason: "Ann Secret wrote spam" });
  const body = { user_id: user_id.toUpperCase(), who: "kim", reason: "asked for it" };
  const erase = (more = {}) =>
    post(`${account.url}/operations/account/erase-user`, { ...body, ...more });
  const dry = await erase({ dry_run: true });
  assert.deepEqual([dry.status, dry.json.outcome], [200, "WOULD_BE_ERASED"], dry.text);
  assert.equal((await call(path, {})).status, 200);
  const { json } = await erase();
  assert.deepEqual(json.outcome, "ERASED");
  assert.deepEqual(json.rows, { users: 1, identities: 1, account_roles: 1, audit_logs: 1 });
  assert.deepEqual(dry.json.rows, json.rows);
  assert.equal((await call(path, {})).status, 404);
  assert.deepEqual(await stateOf(account, user_id), {
    ...{ account_status: "DELETED", roles: [], session_epoch: 2, ended: false },
  });
  const tables = await account.rows<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public'",
  );
  for (const { name } of tables) {
    const traces = await account.rows(`select from ${name} where ${name}::text ~* 'secret|s-ann'`);
    assert.equal(traces.length, 0, name);
  }
  const logged = account.service.log.map(({ message }) => message).join("\n");
  assert.doesNotMatch(logged, /secret/i);
  const { operations: [record] } = await look(account.url, "/debug/account/operations");
  assert.deepEqual([record.kind, record.who, record.reason], ["ERASE_USER", "kim", body.reason]);
  assert.ok(!JSON.stringify(record).includes(user_id));
  const [event] = await account.rows<{ payload: Record<string, unknown> }>(
    "select payload from outbox_events order by created_at desc limit 1",
  );
  assert.partialDeepStrictEqual(event?.payload, {
    ...{ event_type: "SessionsEnded", account_status: "DELETED", session_epoch: 2, roles: [] },
  });
  assert.deepEqual((await erase()).json.rows, {}, "it is safe to repeat");
  const again = await resolve(account, ann);
  assert.ok(again.is_new && again.user_id !== user_id, "who logs in again is a new user");
  assert.equal((await resolve(account, ann)).user_id, again.user_id);
});

Deno.test("a user whose id is written in capitals is erased in every service, also the second time", async () => {
  await using account = await startAccount(debug);
  await using stack = await startStack();
  const { entitlement, notification, place } = stack;
  const { user_id } = await resolve(account, ann);
  const services = { account, entitlement, notification };
  const args = ["erase-user", user_id.toUpperCase(), "--reason", "asked for it"];
  for (const time of [1, 2]) { // the second time the account is erased already
    await grant(entitlement.url, { user_id });
    await untilSent(place, time);
    const { code, errors } = await runOps("ops/ops.ts", services, args);
    assert.equal(code, 0, errors);
    const left = [
      await entitlement.rows("select from entitlement_audit where user_id = $1", [user_id]),
      await ask(place.ownerUrl, "select from notifications where user_id = $1", [user_id]),
    ];
    assert.deepEqual(left, [[], []], `${time}`);
  }
});

Deno.test("an event that could not be published is listed, shown and sent back", async () => {
  await using account = await startAccount(debug);
  const { user_id } = await resolve(account, ann);
  await until("it is published", async () => {
    const left = await account.rows("select from outbox_events where status <> 'PUBLISHED'");
    return left.length === 0;
  });
  const [row] = await account.rows<{ event_id: string }>(
    `update outbox_events
     set status = 'FAILED', published_at = null, last_error = 'torn', stream_seq = null
     returning event_id`,
  );
  const id = row?.event_id ?? "";
  const status = await look(account.url, "/debug/account/status");
  assert.deepEqual([status.nats, status.waiting, status.errors.length], [true, 0, 1]);
  const list = await ops(account, "dead", "list", "--layer", "account");
  assert.match(list.output, new RegExp(`^account +${id} .* torn$`, "m"));
  const sent = await ops(account, "dead", "send-back", "account", id, "--reason", "repaired");
  assert.deepEqual([sent.code, /SENT_BACK/.test(sent.output)], [0, true], sent.errors);
  await until("it is published again", async () => {
    const { output } = await ops(account, "timeline", id);
    return /^account +PUBLISHED$/m.test(output) && /SENT_BACK +by kim: repaired/.test(output);
  });
  const { events: [event] } = await look(account.url, `/debug/account/timeline?user_id=${user_id}`);
  assert.deepEqual([event.event_id, event.type, event.version], [id, "UserRegistered", 1]);
  const log = await ops(account, "operations");
  assert.match(log.output, /SEND_BACK +account +1 +kim +repaired$/m);
});

Deno.test("a service that is not deployed is left out, and its commands say so", async () => {
  const { code, errors } = await ops(nowhere, "accounts", crypto.randomUUID());
  assert.deepEqual([code, /account at .* can't be reached/.test(errors)], [3, true]);
  const out = await runOps("ops/ops.ts", {}, ["accounts", crypto.randomUUID()]);
  assert.deepEqual([out.code, /asks account, which is not deployed/.test(out.errors)], [2, true]);
  const wrong = await runOps("ops/ops.ts", {}, ["status", "--without", "acount"]);
  assert.deepEqual([wrong.code, /unknown service: acount/.test(wrong.errors)], [2, true]);
});
