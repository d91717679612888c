// The HTTP behaviour of the account service and the gateway besides what they do.
import assert from "node:assert/strict";
import { type Account, resolve, startAccount } from "../support/account.ts";
import { assertError, call } from "../support/api.ts";
import { csrf, type LoggedIn, logIn, startGateway, untilConnected } from "../support/gateway.ts";
import type { ServiceProcess } from "../../tools/servers/service_process.ts";
import { describedBy } from "./described.ts";

let account: Account;
let gateway: ServiceProcess;
let ann: LoggedIn;
Deno.test.beforeAll(async () => {
  account = await startAccount();
  gateway = await startGateway(account);
  await untilConnected(gateway);
  ann = await logIn(account);
});
Deno.test.afterAll(async () => {
  await gateway.kill();
  await account[Symbol.asyncDispose]();
});

Deno.test("a path of the account service has its methods, and a verb is part of it", async () => {
  const { userId } = ann;
  const allowed = {
    "/v1/identities:resolve": "POST",
    [`/v1/users/${userId}`]: "GET, HEAD, PATCH",
    [`/v1/users/${userId}:suspend`]: "POST",
    [`/v1/users/${userId}:resume`]: "POST",
    [`/v1/users/${userId}/roles`]: "PUT",
    [`/v1/users/${userId}/audit`]: "GET, HEAD",
    [`/v1/users/${userId}/sessions:end`]: "POST",
    "/v1/sessions/ended": "GET, HEAD",
    [`/v1/sessions/${userId}`]: "GET, HEAD",
    [`/v1/sessions/${userId}:end`]: "POST",
  };
  for (const [path, allow] of Object.entries(allowed)) {
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]) {
      if (allow.includes(method)) continue;
      const answer = await call(account.url + path, { method });
      assert.equal(answer.status, 405, `${method} ${path}: ${answer.text}`);
      assertError(answer, 405, "METHOD_NOT_ALLOWED");
      assert.equal(answer.headers.get("Allow"), allow, path);
    }
  }
  const wrong = [`/v1/users/${userId}:erase`, `/v1/users/${userId}:`, "/v1/users/:suspend"];
  for (const path of wrong) {
    assertError(await call(account.url + path, {}), 404, "NOT_FOUND");
  }
  for (const path of ["/", "/v1/users", "/v1/users/", "/v1/identities", "/v1/sessions"]) {
    assertError(await call(account.url + path, {}), 404, "NOT_FOUND", "no such path");
  }
});

Deno.test("HEAD answers like GET, without the body, and has the version as well", async () => {
  const path = `${account.url}/v1/users/${ann.userId}`;
  const [get, head] = [await call(path), await call(path, { method: "HEAD" })];
  assert.deepEqual([head.status, head.text], [200, ""]);
  for (const name of ["Content-Type", "ETag"]) {
    assert.equal(head.headers.get(name), get.headers.get(name), name);
  }
  const me = await call(`${gateway.url}/v1/me`, { method: "HEAD", headers: ann.as() });
  assert.deepEqual([me.status, me.text], [200, ""]);
});

Deno.test("a body of 16 KiB is accepted, and one byte more is refused, on either side of the gateway", async () => {
  const path = `/v1/users/${ann.userId}`;
  const headers = { "Content-Type": "application/json" };
  const proof = await csrf(gateway, ann);
  const sized = (bytes: number) => `{"locale":"en"${" ".repeat(bytes - 15)}}`;
  assert.equal(sized(16_384).length, 16_384);
  const sides = [
    { url: account.url + path, headers },
    { url: gateway.url + path, headers: ann.as({ ...headers, ...proof }) },
  ];
  for (const { url, headers } of sides) {
    const patch = (body: string) => call(url, { method: "PATCH", headers, body });
    assert.equal((await patch(sized(16_384))).status, 200);
    assertError(await patch(sized(16_385)), 413, "PAYLOAD_TOO_LARGE");
    const text = { ...headers, "Content-Type": "text/plain" };
    const plain = await call(url, { method: "PATCH", headers: text, body: "{}" });
    assertError(plain, 415, "UNSUPPORTED_MEDIA_TYPE");
  }
});

Deno.test("the trace id of a request reaches the audit of its change", async () => {
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const { user_id } = await resolve(account, { provider: "p", subject: crypto.randomUUID() });
  const path = `${account.url}/v1/users/${user_id}`;
  const answer = await call(path, {
    method: "PATCH",
    headers: { "Content-Type": "application/json", "X-Trace-Id": traceId },
    body: '{"display_name":"Ann"}',
  });
  assert.equal(answer.headers.get("X-Trace-Id"), traceId);
  const { json } = await call(`${path}/audit`);
  assert.equal(json.audit[0].trace_id, traceId);
});

Deno.test("the gateway describes what the contract names, and nothing of services behind", async () => {
  const { api, operations } = await describedBy(gateway.url);
  assert.equal(api.openapi, "3.1.0");
  assert.deepEqual(
    operations.map(({ name }) => name).filter((name) => / \/(v1|log)/.test(name)).sort(),
    [
      "delete /v1/matchmaking/tickets/{ticket_id}",
      "get /login",
      "get /login/callback",
      "get /v1/matchmaking/tickets/{ticket_id}",
      "get /v1/me",
      "get /v1/users/{user_id}",
      "get /v1/users/{user_id}/entitlements",
      "get /v1/users/{user_id}/notifications",
      "get /v1/users/{user_id}/points",
      "get /v1/users/{user_id}/profile",
      "patch /v1/users/{user_id}",
      "post /logout",
      "post /logout/backchannel",
      "post /v1/matchmaking/queues/{mode}/tickets",
    ],
  );
  for (const { name, described } of operations) {
    for (const [status, answer] of Object.entries<{ description: string }>(described.responses)) {
      assert.match(status, /^[2-5]\d\d$/);
      assert.ok(answer.description, `${name} ${status}`);
    }
  }
});
