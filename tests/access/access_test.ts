// Every endpoint without a credential, with a wrong one, an expired one, one without the scope, and
// the right one. The endpoints come from the API description, so that no route can be forgotten.
import assert from "node:assert/strict";
import { type Scope, scopes } from "../../proto/scopes.ts";
import { newToken } from "../../shared/access/tokens.ts";
import { bearer, type Client, newClient, tokensOf } from "../support/access.ts";
import { type Account, startAccount } from "../support/account.ts";
import { type Answer, assertError, call, grant } from "../support/api.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { type Issuer, startIssuer } from "./issuer.ts";
import { describedBy } from "../http/described.ts";
import { changeHead, sendRaw } from "../http/raw_http.ts";
import { type Matchmaking, startMatchmaking } from "../support/matchmaking.ts";
import { orderSettings } from "../support/orders.ts";
import { type Stack, startStack } from "../support/stack.ts";

const publicPaths = ["/docs", "/livez", "/openapi.json", "/readyz"];
const clients = new Map(
  scopes.map((scope) => [scope, newClient(`only-${scope.replace(":", "-")}`, scope)]),
);
const tokens = tokensOf(...clients.values());
const tokenOf = (scope: Scope) => (clients.get(scope) as Client).token;
const tokenWithout = (scope: Scope) =>
  tokenOf(scope === "debug:read" ? "metrics:read" : "debug:read");

let issuer: Issuer;
let stack: Stack;
let account: Account;
let matchmaking: Matchmaking;
Deno.test.beforeAll(async () => {
  issuer = await startIssuer();
  const settings = { ...tokens, ...issuer.settings };
  const notification = { ...settings, ...orderSettings({ url: "http://127.0.0.1:1" }) };
  stack = await startStack({ entitlement: settings, notification });
  account = await startAccount({ ...settings, ACCOUNT_DEBUG_ENABLED: "true" });
  matchmaking = await startMatchmaking({ ...settings, MATCHMAKING_DEBUG_ENABLED: "true" });
});
Deno.test.afterAll(async () => {
  await matchmaking[Symbol.asyncDispose]();
  await account[Symbol.asyncDispose]();
  await stack[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});

interface Endpoint {
  url: string;
  path: string;
  method: string;
  scope: Scope | undefined; // undefined if the endpoint is public
}

async function endpoints(): Promise<Endpoint[]> {
  const { entitlement, notification } = stack;
  const urls = [entitlement.url, notification.url, account.url, matchmaking.url];
  const found = await Promise.all(urls.map(async (url) => {
    const { operations } = await describedBy(url);
    return operations.map(({ path, method, described: { security } }) => (
      { url, path, method: method.toUpperCase(), scope: security[0]?.bearer[0] }
    ));
  }));
  return found.flat();
}

function ask({ url, path, method }: Endpoint, headers: Record<string, string>): Promise<Answer> {
  const hasBody = ["POST", "PATCH", "PUT"].includes(method);
  return call(url + path.replace(/\{\w+\}/, "ann"), {
    method,
    headers: hasBody ? { ...headers, "Content-Type": "application/json" } : headers,
    ...(hasBody ? { body: "{}" } : {}),
  });
}

const challenge = (answer: Answer) => answer.headers.get("WWW-Authenticate");

/** The table of docs/access.md; the first match counts. */
const opened: [endpoint: RegExp, scope: Scope][] = [
  [/^GET \/v1\/entitlements\/reservations\/\{reservation_id\}$/, "entitlements:read"],
  [/^(POST|DELETE) \/v1\/entitlements\//, "entitlements:write"],
  [/^GET \/v1\/users\/\{user_id\}\/entitlements$/, "entitlements:read"],
  [/^GET \/v1\/points\/reservations\/\{reservation_id\}$/, "points:read"],
  [/^(POST|DELETE) \/v1\/points\//, "points:write"],
  [/^GET \/v1\/users\/\{user_id\}\/points(\/(transactions|reservations))?$/, "points:read"],
  [/^GET \/v1\/orders(\/\{order_id\})?$/, "orders:read"],
  [/^POST \/v1\/orders$/, "orders:write"],
  [/^GET \/v1\/endpoints(\/\{endpoint_id\}(\/attempts)?)?$/, "endpoints:read"],
  [/^(POST|PATCH|DELETE) \/v1\/endpoints(\/|$)/, "endpoints:write"],
  [/^(GET \/v1\/sessions\/|POST \/v1\/identities:resolve$)/, "accounts:resolve"],
  [/^GET \/v1\/users\/\{user_id\}$/, "accounts:read"],
  [/^PATCH \/v1\/users\/\{user_id\}$/, "accounts:write"],
  [/^POST .*(\/sessions|\/sessions\/\{session_id\}|identities):end(-sessions)?$/, "accounts:write"],
  [/^(POST|PUT|GET) \/v1\/users\/\{user_id\}(:suspend|:resume|\/roles|\/audit)$/, "accounts:admin"],
  [/^GET \/v1\/users\/\{user_id\}\/notifications$/, "notifications:read"],
  [
    /^POST \/(debug\/account\/find|operations\/account\/(?!dead-letters|erase-user))/,
    "accounts:admin",
  ],
  [/ \/v1\/matchmaking\//, "matchmaking:act-as"],
  [/ \/debug\/notification\/inbox\/\{user_id\}$/, "notifications:read"],
  [/ \/debug\//, "debug:read"],
  [/ \/operations\//, "operations:write"],
  [/ \/metrics$/, "metrics:read"],
];

Deno.test("each endpoint needs the scope that docs/access.md states", async () => {
  for (const { method, path, scope } of await endpoints()) {
    const expected = opened.find(([one]) => one.test(`${method} ${path}`))?.[1];
    assert.equal(scope, expected, `${method} ${path}`);
  }
});

const isOfAccount = /^\/v1\/users\/\{user_id\}($|:|\/roles|\/audit|\/sessions)/;

Deno.test("every endpoint answers callers with its scope, and refuses everybody else", async () => {
  const all = await endpoints();
  const expired = await issuer.sign({ sub: "ann", scope: scopes.join(" "), inSeconds: -60 });
  assert.equal(all.length, 111, all.map(({ path }) => path).join("\n"));
  for (const endpoint of all) {
    const { path, method, scope } = endpoint;
    const what = `${method} ${path}`;
    const none = await ask(endpoint, {});
    const wrong = await ask(endpoint, bearer(newToken()));
    if (scope === undefined) {
      assert.ok(publicPaths.includes(path), what);
      assert.deepEqual([none.status, wrong.status], [200, 200], what);
      continue;
    }
    assertError(none, 401, "UNAUTHORIZED");
    assert.equal(challenge(none), 'Bearer realm="kenri"');
    for (const answer of [wrong, await ask(endpoint, bearer(expired))]) {
      assertError(answer, 401, "UNAUTHORIZED");
      assert.equal(challenge(answer), 'Bearer realm="kenri", error="invalid_token"');
    }
    const lacking = await ask(endpoint, bearer(tokenWithout(scope)));
    assertError(lacking, 403, "FORBIDDEN");
    assert.equal(
      challenge(lacking),
      `Bearer realm="kenri", error="insufficient_scope", scope="${scope}"`,
    );
    const right = await ask(endpoint, bearer(tokenOf(scope)));
    const needsRow = /\{(reservation|order|endpoint|session)_id\}/.test(path) ||
      isOfAccount.test(path);
    const expected = needsRow ? [400, 404] : [200, 400];
    assert.ok(expected.includes(right.status), `${what}: ${right.status} ${right.text}`);
  }
});

Deno.test("a request is refused before any of its body has arrived", async () => {
  const { url } = stack.entitlement;
  const headers = ["Idempotency-Key: k", "Content-Length: 100"];
  const refusals: [string[], number][] = [
    [[], 401],
    [[`Authorization: Bearer ${newToken()}`], 401],
    [[`Authorization: Bearer ${tokenOf("entitlements:read")}`], 403],
  ];
  for (const [shown, status] of refusals) {
    const answer = await sendRaw(url, changeHead(...headers, ...shown));
    assert.equal(answer?.status, status);
  }
});

Deno.test("unknown callers can't find out which paths exist", async () => {
  const { url } = stack.entitlement;
  for (const path of ["/", "/v1", "/debug", "/debug/entitlement/nothing", "/console/nothing"]) {
    assertError(await call(url + path), 401, "UNAUTHORIZED");
    const known = await call(url + path, { headers: bearer(tokenOf("metrics:read")) });
    assertError(known, 404, "NOT_FOUND");
  }
  const grants = `${url}/v1/entitlements/grants`;
  assertError(await call(grants), 401, "UNAUTHORIZED");
  const headers = bearer(tokenOf("metrics:read"));
  assertError(await call(grants, { headers }), 405, "METHOD_NOT_ALLOWED");
});

Deno.test("a credential is accepted only as a bearer token in the Authorization header", async () => {
  const url = `${stack.entitlement.url}/metrics`;
  const token = tokenOf("metrics:read");
  const statusWith = async (Authorization: string) =>
    (await call(url, { headers: { Authorization } })).status;
  for (const good of [`Bearer ${token}`, `bearer ${token}`, `BEARER   ${token}`]) {
    assert.equal(await statusWith(good), 200, good);
  }
  const bad = ["", token, `Basic ${token}`, `Bearer`, `Bearer ${token} ${token}`];
  for (const one of [...bad, `Bearer ${token}x`, `Bearer ${token.slice(0, -1)}`, "Bearer é"]) {
    assert.equal(await statusWith(one), 401, one);
  }
  for (const query of [`access_token=${token}`, `token=${token}`]) {
    assertError(await call(`${url}?${query}`), 401, "UNAUTHORIZED");
  }
  for (const cookie of ["kenri-entitlement", "__Host-kenri-entitlement", "kenri_credential"]) {
    const headers = { Cookie: `${cookie}=${token}` };
    assertError(await call(url, { headers }), 401, "UNAUTHORIZED");
  }
});

Deno.test("no answer and no log line contains a credential", async () => {
  const wrong = newToken();
  const answers = [
    await call(`${stack.entitlement.url}/metrics`, { headers: bearer(wrong) }),
    await call(`${stack.entitlement.url}/${wrong}`, { headers: bearer(wrong) }),
  ];
  for (const { text } of answers) assert.doesNotMatch(text, /kenri_/);
  const log = JSON.stringify([
    stack.entitlement.service.log,
    stack.notification.log,
    account.service.log,
  ]);
  assert.doesNotMatch(log, /kenri_[0-9a-f]{64}|sha256/);
  assert.match(log, /only-metrics-read/);
});

Deno.test("a client can change its token without a gap, and removing an entry revokes its token", async () => {
  const before = newClient("shop", "entitlements:write");
  const after = newClient("shop", "entitlements:write");
  await using both = await startEntitlement(tokensOf(before, after));
  const grantWith = (url: string, { token }: Client) =>
    grant(url, { user_id: crypto.randomUUID() }, undefined, bearer(token));
  assert.equal((await grantWith(both.url, before)).status, 200);
  assert.equal((await grantWith(both.url, after)).status, 200);
  await using only = await startEntitlement(tokensOf(after));
  assertError(await grantWith(only.url, before), 401, "UNAUTHORIZED");
  assert.equal((await grantWith(only.url, after)).status, 200);
});

Deno.test("without configured credentials everybody on this machine is admitted, and the log warns about it", async () => {
  await using kenri = await startEntitlement();
  assert.equal((await grant(kenri.url)).status, 200);
  assert.equal((await call(`${kenri.url}/metrics`)).status, 200);
  const warnings = kenri.service.log.filter(({ message }) =>
    /everybody on this machine/.test(message)
  );
  assert.deepEqual(warnings.map(({ level }) => level), ["warning"]);
});
