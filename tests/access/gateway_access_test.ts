// Every endpoint of the gateway with the credential of a service, with a session, with neither and with
// both. The endpoints come from the API description, so that no route can be forgotten.
import assert from "node:assert/strict";
import { scopes } from "../../proto/scopes.ts";
import { newToken } from "../../shared/access/tokens.ts";
import { describedBy } from "../http/described.ts";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { startAccount } from "../support/account.ts";
import { type Answer, assertError, call } from "../support/api.ts";
import { csrf, type LoggedIn, logIn, startGateway } from "../support/gateway.ts";
import type { ServiceProcess } from "../../tools/servers/service_process.ts";

const publicPaths = [
  ...["/docs", "/livez", "/openapi.json", "/readyz"],
  ...["/login", "/login/callback", "/logout/backchannel"],
];
const all = newClient("all", ...scopes);
const some = newClient("some", "send");

interface Stage extends AsyncDisposable {
  gateway: ServiceProcess;
  ann: LoggedIn;
  proof: Record<string, string>;
}

async function start(): Promise<Stage> {
  await using parts = new AsyncDisposableStack();
  const account = parts.use(await startAccount());
  const settings = { ...tokensOf(all, some), GATEWAY_DEBUG_ENABLED: "true" };
  const gateway = parts.use(await startGateway(account, settings));
  const ann = await logIn(account);
  const proof = await csrf(gateway, ann);
  const moved = parts.move();
  return { gateway, ann, proof, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

interface Endpoint {
  path: string;
  method: string;
  needs: "nothing" | "a session" | string; // or the scope
}

async function endpointsOf({ gateway }: Stage): Promise<Endpoint[]> {
  const { operations } = await describedBy(gateway.url);
  return operations.map(({ path, method, described: { security } }) => {
    const [one] = security;
    const needs = one === undefined ? "nothing" : one.session ? "a session" : one.bearer[0];
    return { path, method: method.toUpperCase(), needs };
  });
}

function ask(
  { gateway, ann }: Stage,
  { path, method }: Endpoint,
  headers: Record<string, string>,
): Promise<Answer> {
  const filled = path.replace("{user_id}", ann.userId).replaceAll(/\{\w+\}/g, "one");
  const hasBody = ["POST", "PATCH", "PUT"].includes(method);
  return call(gateway.url + filled, {
    method,
    redirect: "manual",
    headers: hasBody ? { ...headers, "Content-Type": "application/json" } : headers,
    ...(hasBody ? { body: "{}" } : {}),
  });
}

Deno.test("people need a session, services a scope, and only the way to a session is public", async () => {
  await using stage = await start();
  for (const { path, method, needs } of await endpointsOf(stage)) {
    const what = `${method} ${path}`;
    if (publicPaths.includes(path)) assert.equal(needs, "nothing", what);
    else if (path === "/logout" || path.startsWith("/v1/")) assert.equal(needs, "a session", what);
    else if (path === "/metrics") assert.equal(needs, "metrics:read", what);
    else if (path.startsWith("/debug/")) assert.equal(needs, "debug:read", what);
    else assert.fail(`${what} is new`);
  }
});

Deno.test("neither kind of credential opens what needs the other one", async () => {
  await using stage = await start();
  const { ann, proof } = stage;
  const found = await endpointsOf(stage);
  assert.ok(found.length >= 19, found.map(({ path }) => path).join("\n"));
  for (const endpoint of found) {
    const { path, method, needs } = endpoint;
    const what = `${method} ${path}`;
    const [none, session, token] = [{}, ann.as(proof), bearer(all.token)];
    if (needs === "nothing") {
      for (const headers of [none, session, token]) {
        const { status } = await ask(stage, endpoint, headers);
        assert.ok(![403, 404].includes(status), `${what}: ${status}`);
      }
      continue;
    }
    const [own, other] = needs === "a session" ? [session, token] : [token, session];
    assertError(await ask(stage, endpoint, none), 401, "UNAUTHORIZED");
    assertError(await ask(stage, endpoint, other), 401, "UNAUTHORIZED");
    assertError(await ask(stage, endpoint, bearer(newToken())), 401, "UNAUTHORIZED");
    if (needs === "a session") {
      const isSafe = method === "GET";
      if (!isSafe) assertError(await ask(stage, endpoint, ann.as()), 403, "CSRF_REJECTED");
    } else assertError(await ask(stage, endpoint, bearer(some.token)), 403, "FORBIDDEN");
    if (path === "/logout") continue; // it would end the session
    for (const headers of [own, { ...own, ...other }]) {
      const { status, text } = await ask(stage, endpoint, headers);
      assert.ok(![401, 403].includes(status), `${what}: ${text}`);
    }
  }
});

Deno.test("unknown callers can't find out which paths exist", async () => {
  await using stage = await start();
  const { gateway, ann, proof } = stage;
  for (const path of ["/v1", "/v1/", "/v1/nothing", "/console/nothing", "/debug/gateway/nothing"]) {
    assertError(await call(gateway.url + path), 401, "UNAUTHORIZED");
  }
  assertError(await call(`${gateway.url}/v1/nothing`, { headers: ann.as() }), 404, "NOT_FOUND");
  const put = await call(`${gateway.url}/v1/me`, { method: "PUT", headers: ann.as(proof) });
  assertError(put, 405, "METHOD_NOT_ALLOWED");
  assert.equal(put.headers.get("Allow"), "GET, HEAD");
  assertError(await call(`${gateway.url}/v1/me`, { method: "PUT" }), 401, "UNAUTHORIZED");
});

Deno.test("no other form of a path leads past the session", async () => {
  await using stage = await start();
  const { gateway } = stage;
  const forms = [
    "/%761/me",
    "//v1/me",
    "/v1//me",
    "/./v1/me",
    "/V1/me",
    "/v1%2fme",
    "/logout/../v1/me",
  ];
  const others = [
    "/v1/me/",
    "/v1/me;a",
    "/login/../v1/me",
    "/v1/%6de",
    "/%2e%2e/v1/me",
    "/\\v1/me",
  ];
  for (const path of [...forms, ...others]) {
    for (const headers of [{}, bearer(all.token)]) {
      const { status, text } = await call(gateway.url + path, { headers });
      assert.ok([401, 404].includes(status), `${path}: ${status}`);
      assert.doesNotMatch(text, /user_id|csrf_token/);
    }
  }
});
