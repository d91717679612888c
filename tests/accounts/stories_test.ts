// G-109: the stories of people, end to end: every service real and with credentials, except
// matchmaking. Each credential of the gateway has only the scopes that docs/access.md lists.
import assert from "node:assert/strict";
import type { Scope } from "../../proto/scopes.ts";
import type { Settings } from "../../tools/servers/service_process.ts";
import { type Receiver, startReceiver } from "../../tools/receiver/receiver.ts";
import { until } from "../../tools/servers/wait.ts";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { type Answer, assertError, call, command, grant } from "../support/api.ts";
import { json } from "../support/behind.ts";
import { Browser, type LoginStack, startLoginStack } from "../support/login.ts";
import { type Stack, startStack } from "../support/stack.ts";

const scopesOfGateway = {
  account: ["accounts:resolve", "accounts:read", "accounts:write", "accounts:act-as"],
  entitlement: ["entitlements:read", "points:read"],
  notification: ["notifications:read"],
} satisfies Record<string, Scope[]>;

const shop = newClient("shop", "entitlements:write", "points:write");
const gateways = {
  account: newClient("gateway", ...scopesOfGateway.account),
  entitlement: newClient("gateway", ...scopesOfGateway.entitlement),
  notification: newClient("gateway", ...scopesOfGateway.notification),
};

let stack: Stack;
let login: LoginStack;
let matchmaking: Receiver;

async function startAll(running: AsyncDisposableStack): Promise<void> {
  matchmaking = running.use(await startReceiver());
  stack = running.use(
    await startStack({
      entitlement: tokensOf(shop, gateways.entitlement),
      notification: tokensOf(gateways.notification),
    }),
  );
  const settings: Settings = {
    GATEWAY_ENTITLEMENT_URL: stack.entitlement.url,
    GATEWAY_ENTITLEMENT_TOKEN: gateways.entitlement.token,
    GATEWAY_NOTIFICATION_URL: stack.notification.url,
    GATEWAY_NOTIFICATION_TOKEN: gateways.notification.token,
    GATEWAY_ACCOUNT_TOKEN: gateways.account.token,
    GATEWAY_MATCHMAKING_URL: matchmaking.url,
  };
  login = running.use(await startLoginStack(settings, tokensOf(gateways.account)));
}

Deno.test("G-109: the stories of people", async (t) => {
  await using running = new AsyncDisposableStack();
  await startAll(running);
  await t.step("a person logs in, is registered once, and changes their own account", entersTwice);
  await t.step("what a person bought is in their lists, their inbox and their profile", buysABook);
  await t.step("what is another's is forbidden, except an account to an ADMIN", looksAtAnother);
  await t.step("matchmaking is reached only after a login, for the person", waitsForAMatch);
});

interface Person {
  userId: string;
  ask(path: string, init?: RequestInit, more?: Record<string, string>): Promise<Answer>;
}

async function enter(name: string): Promise<Person> {
  const browser = new Browser();
  assert.equal((await browser.logIn(login.url, name)).status, 302);
  const Cookie = browser.cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  const me = await call(`${login.url}/v1/me`, { headers: { Cookie } });
  const { user_id: userId, csrf_token } = me.json;
  const proof = { "X-CSRF-Token": csrf_token, Origin: login.url };
  const headers = { Cookie, ...proof, "Content-Type": "application/json" };
  return {
    userId,
    ask: (path, init = {}, more = {}) =>
      call(login.url + path, { ...init, headers: { ...headers, ...more } }),
  };
}

const book = { stock_keeping_unit: "book", reason: "purchase", purchase_id: "p-1" };
const ticket = { ticket_id: "casual-1", status: "QUEUED", expires_at: "2026-01-02T03:04:05Z" };

async function buys({ userId }: Person): Promise<void> {
  const { url } = stack.entitlement;
  const key = crypto.randomUUID();
  const granted = await grant(url, { ...book, user_id: userId }, key, bearer(shop.token));
  assert.equal(granted.status, 200, granted.text);
  const points = { user_id: userId, point_amount: 100, reason: "purchase", source_id: "p-1" };
  const given = await command(`${url}/v1/points/grants`, points, key + 1, bearer(shop.token));
  assert.equal(given.status, 200, given.text);
}

async function entersTwice(): Promise<void> {
  const ann = await enter("ann");
  assert.equal((await enter("ann")).userId, ann.userId, "the second login is the same user");
  const own = `/v1/users/${ann.userId}`;
  const before = await ann.ask(own);
  assert.deepEqual([before.json.user_id, before.json.status, before.json.roles], [
    ...[ann.userId, "ACTIVE", ["USER"]],
  ]);
  const change = (body: unknown, tag: string) => {
    const init = { method: "PATCH", body: JSON.stringify(body) };
    return ann.ask(own, init, { "If-Match": tag });
  };
  const tag = `${before.headers.get("ETag")}`;
  const changed = await change({ display_name: "Ann B" }, tag);
  assert.deepEqual([changed.status, changed.json.display_name], [200, "Ann B"]);
  assert.equal(changed.json.locale, before.json.locale, "an absent field is unchanged");
  assertError(await change({ display_name: "lost" }, tag), 412, "PRECONDITION_FAILED");
  assert.equal((await ann.ask(own)).json.display_name, "Ann B");
}

async function buysABook(): Promise<void> {
  const [ann, bob] = [await enter("ann"), await enter("bob")];
  await buys(ann);
  const own = `/v1/users/${ann.userId}`;
  const entitlements = (await ann.ask(`${own}/entitlements`)).json;
  assert.equal(entitlements.entitlements[0].stock_keeping_unit, "book");
  const points = (await ann.ask(`${own}/points`)).json;
  assert.equal(points.balances[0].balance, 100);
  await until("ann was notified", async () => {
    const { status, json } = await ann.ask(`${own}/notifications?limit=10`);
    assert.equal(status, 200);
    return json.notifications.length === 2;
  });
  matchmaking.behave(json(ticket));
  const profile = await ann.ask(`${own}/profile?ticket_id=casual-1`);
  assert.equal(profile.status, 200);
  const account = (await ann.ask(own)).json;
  assert.deepEqual(profile.json, { account, entitlement: entitlements, matchmaking: ticket });
  const empty = (await bob.ask(`/v1/users/${bob.userId}/profile`)).json;
  assert.deepEqual([empty.entitlement.entitlements, empty.matchmaking], [[], null]);
}

async function looksAtAnother(): Promise<void> {
  const [ann, bob, kim] = [await enter("ann"), await enter("bob"), await enter("kim")];
  const theirs = `/v1/users/${ann.userId}`;
  const codes = {
    [theirs]: "ACCOUNT_FORBIDDEN",
    [`${theirs}/profile`]: "PROFILE_FORBIDDEN",
    [`${theirs}/entitlements`]: "ENTITLEMENT_FORBIDDEN",
    [`${theirs}/points`]: "ENTITLEMENT_FORBIDDEN",
    [`${theirs}/notifications`]: "NOTIFICATION_FORBIDDEN",
  };
  for (const [path, code] of Object.entries(codes)) {
    assertError(await bob.ask(path), 403, code);
    assertError(await call(login.url + path), 401, "UNAUTHORIZED");
  }
  const init = { method: "PATCH", body: JSON.stringify({ display_name: "mine" }) };
  assertError(await bob.ask(theirs, init, { "X-User-Roles": "ADMIN" }), 403, "ACCOUNT_FORBIDDEN");
  await login.account.rows(
    "insert into account_roles (user_id, role) values ($1, 'ADMIN') on conflict do nothing",
    [kim.userId],
  );
  assert.equal((await kim.ask(theirs)).json.user_id, ann.userId);
  assertError(await kim.ask(`${theirs}/profile`), 403, "PROFILE_FORBIDDEN");
  const nobody = "0197f7a0-5f0c-7c3e-9b1d-2f4f3c1a9e57";
  assertError(await kim.ask(`/v1/users/${nobody}`), 404, "ACCOUNT_NOT_FOUND");
  assertError(await kim.ask("/v1/users/kim"), 404, "ACCOUNT_NOT_FOUND");
}

async function waitsForAMatch(): Promise<void> {
  const ann = await enter("ann");
  const before = matchmaking.received.length;
  const queue = "/v1/matchmaking/queues/casual/tickets";
  const body = JSON.stringify({ party_size: 1, attributes: {}, idempotency_key: "k" });
  const join = { method: "POST", body };
  assertError(await call(login.url + queue, join), 401, "UNAUTHORIZED");
  assert.equal(matchmaking.received.length, before);
  matchmaking.behave(json(ticket));
  assert.deepEqual((await ann.ask(queue, join)).json, ticket);
  const path = "/v1/matchmaking/tickets/casual-1";
  assert.equal((await ann.ask(path)).json.status, "QUEUED");
  matchmaking.behave(json({ ...ticket, status: "CANCELLED" }));
  assert.equal((await ann.ask(path, { method: "DELETE" })).json.status, "CANCELLED");
  const asked = matchmaking.received.slice(before);
  assert.deepEqual(asked.map(({ method, path }) => `${method} ${path}`), [
    ...[`POST ${queue}`, `GET ${path}`, `DELETE ${path}`],
  ]);
  for (const { headers } of asked) assert.equal(headers.get("X-User-Id"), ann.userId);
  assert.equal(asked[0]?.body, body);
}
