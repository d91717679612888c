// Requests that claim to come from somebody, or from our own pages: only the session says who it is,
// and only its token that the request is meant.
import assert from "node:assert/strict";
import type { ServiceProcess } from "../../tools/servers/service_process.ts";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { type Account, startAccount } from "../support/account.ts";
import { assertError, call } from "../support/api.ts";
import { csrf, logIn, logOut, me, startGateway, untilConnected } from "../support/gateway.ts";

const everything = newClient("ops", "metrics:read", "debug:read", "operations:write");

let account: Account;
let gateway: ServiceProcess;
Deno.test.beforeAll(async () => {
  account = await startAccount();
  gateway = await startGateway(account, {
    ...tokensOf(everything),
    GATEWAY_DEBUG_ENABLED: "true",
    GATEWAY_RATE_USER: "1000000",
    GATEWAY_RATE_USER_BURST: "1000000",
  });
  await untilConnected(gateway);
});
Deno.test.afterAll(async () => {
  await gateway.kill();
  await account[Symbol.asyncDispose]();
});

Deno.test("headers that claim an identity change nothing, with a session and without", async () => {
  const [ann, bob] = [await logIn(account), await logIn(account)];
  const claims = {
    "X-User-Id": bob.userId,
    "X-User-Roles": "ADMIN",
    "X-Roles": "ADMIN",
    "X-Forwarded-User": bob.userId,
    "X-Remote-User": bob.userId,
    "X-Session-Id": crypto.randomUUID(),
    "X-Forwarded-Email": "bob@example.com",
    "X-Original-URL": `/v1/users/${bob.userId}`,
    "X-HTTP-Method-Override": "DELETE",
  };
  const headers = ann.as(claims);
  const { status, json } = await call(`${gateway.url}/v1/me`, { headers });
  assert.deepEqual([status, json.user_id, json.roles], [200, ann.userId, ["USER"]]);
  assertError(await call(`${gateway.url}/v1/me`, { headers: claims }), 401, "UNAUTHORIZED");
});

Deno.test("a token of a service is no session, and a session opens no path of services", async () => {
  const ann = await logIn(account);
  const token = bearer(everything.token);
  assertError(await call(`${gateway.url}/v1/me`, { headers: token }), 401, "UNAUTHORIZED");
  const proof = await csrf(gateway, ann);
  assertError(
    await call(`${gateway.url}/logout`, { method: "POST", headers: { ...token, ...proof } }),
    ...[401, "UNAUTHORIZED"] as const,
  );
  for (const path of ["/metrics", "/debug/gateway/status", "/console", "/nothing"]) {
    assertError(await call(gateway.url + path, { headers: ann.as() }), 401, "UNAUTHORIZED");
  }
  assert.equal((await call(`${gateway.url}/metrics`, { headers: token })).status, 200);
  const both = await call(`${gateway.url}/v1/me`, { headers: ann.as(bearer("wrong")) });
  assert.equal(both.status, 200, "the session counts, and the header has no meaning");
});

Deno.test("an unsafe request needs the token of its own session, from our own pages", async () => {
  const [ann, bob] = [await logIn(account), await logIn(account)];
  const tokenOf = async (person: { cookie: string }) => {
    const { "X-CSRF-Token": token } = await csrf(gateway, person);
    return { "X-CSRF-Token": token };
  };
  const [own, others] = [await tokenOf(ann), await tokenOf(bob)];
  const ours = "http://localhost:8000";
  const refused: Record<string, string>[] = [
    ...[{}, others, { "X-CSRF-Token": "" }, { "X-CSRF-Token": `${own["X-CSRF-Token"]}A` }].map(
      (headers) => ({ ...headers, Origin: ours }),
    ),
    ...["cross-site", "same-site", "none", "", "SAME-ORIGIN"].map((site) => ({
      ...{ ...own, "Sec-Fetch-Site": site, Origin: ours },
    })),
    ...["null", "http://localhost", "https://localhost:8000", `${ours}.example`, `${ours}/`, ""]
      .map((Origin) => ({ ...own, Origin })),
    own, // it says neither
    { "Sec-Fetch-Site": "same-origin" },
    { ...others, "Sec-Fetch-Site": "same-origin" },
    { "X-CSRF-Token": `${own["X-CSRF-Token"]}, ${own["X-CSRF-Token"]}`, Origin: ours },
  ];
  for (const headers of refused) {
    const answer = await logOut(gateway, ann, headers);
    assert.equal(answer.status, 403, JSON.stringify(headers));
    assertError(answer, 403, "CSRF_REJECTED");
  }
  for (const path of ["/v1/me", "/v1/anything"]) {
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"]) {
      const answer = await call(gateway.url + path, { method, headers: ann.as() });
      assertError(answer, 403, "CSRF_REJECTED");
    }
  }
  assert.equal((await me(gateway, ann)).status, 200, "a refused request changes nothing");
  for (const headers of [{ Origin: ours }, { "Sec-Fetch-Site": "same-origin" }]) {
    const device = await logIn(account);
    const proof = await tokenOf(device);
    assert.equal((await logOut(gateway, device, { ...proof, ...headers })).status, 204);
  }
});

Deno.test("no answer, log line or metric contains a session or its token", async () => {
  const ann = await logIn(account);
  const proof = await csrf(gateway, ann);
  await call(`${gateway.url}/v1/${ann.cookie.slice("kenri=".length)}`, { headers: ann.as(proof) });
  const metrics = await call(`${gateway.url}/metrics`, { headers: bearer(everything.token) });
  const shown = `${JSON.stringify(gateway.log)}${metrics.text}`;
  assert.doesNotMatch(shown, /eyJ[\w-]+\.|kenri=/);
  assert.ok(!shown.includes(proof["X-CSRF-Token"]));
  assert.ok(!shown.includes(ann.userId));
});
