// Every answer of a service has headers that protect it in a browser, whatever its status.
import assert from "node:assert/strict";
import { startAccount } from "../support/account.ts";
import { grant } from "../support/api.ts";
import { startGateway } from "../support/gateway.ts";
import { startStack } from "../support/stack.ts";

const nothing = "default-src 'none'; frame-ancestors 'none'";
const always = {
  "X-Content-Type-Options": "nosniff",
  "Cross-Origin-Resource-Policy": "same-origin",
};

async function headersOf(url: string, status: number, init: RequestInit = {}): Promise<Headers> {
  const answer = await fetch(url, { redirect: "manual", ...init });
  await answer.body?.cancel();
  assert.equal(answer.status, status, url);
  for (const [name, value] of Object.entries(always)) {
    assert.equal(answer.headers.get(name), value, `${name} of ${url}`);
  }
  return answer.headers;
}

Deno.test("a browser may not show, load or keep an answer for programs", async () => {
  await using stack = await startStack();
  await using account = await startAccount();
  await using gateway = await startGateway(account);
  const { entitlement, notification } = stack;
  const change = await grant(entitlement.url);
  for (const [name, value] of Object.entries(always)) assert.equal(change.headers.get(name), value);
  const answers: [string, number, RequestInit?][] = [
    ...[entitlement.url, notification.url, account.url, gateway.url].flatMap((
      url,
    ): [string, number, RequestInit?][] => [
      [`${url}/livez`, 200],
      [`${url}/readyz`, 200],
      [`${url}/metrics`, 200],
      [`${url}/openapi.json`, 200],
      [`${url}/nothing`, 404],
      [`${url}/livez`, 405, { method: "DELETE" }],
      [`${url}/${"x".repeat(17_000)}`, 414],
    ]),
    [`${account.url}/v1/users/ann`, 404],
    [`${account.url}/v1/identities:resolve`, 415, { method: "POST" }],
    [`${gateway.url}/v1/me`, 401],
    [`${gateway.url}/logout`, 401, { method: "POST" }],
    [`${entitlement.url}/v1/users/ann/entitlements`, 200],
    [`${entitlement.url}/v1/users/%ff/entitlements`, 400],
    [`${entitlement.url}/v1/entitlements/grants`, 400, { method: "POST" }],
    [`${entitlement.url}/debug/entitlement/timeline?user_id=ann`, 200],
    [`${notification.url}/debug/notification/inbox/ann`, 200],
  ];
  for (const [url, status, init] of answers) {
    const headers = await headersOf(url, status, init);
    assert.equal(headers.get("Content-Security-Policy"), nothing, url);
    assert.equal(headers.get("Cache-Control"), "no-store", url);
  }
});

Deno.test("a page loads nothing from elsewhere, and other sites and caches can't frame, open or keep it", async () => {
  await using stack = await startStack();
  for (const { url } of [stack.entitlement, stack.notification]) {
    for (const path of ["/docs", "/console", "/console/timeline", "/console/dead-letters"]) {
      const headers = await headersOf(url + path, 200);
      const policy = headers.get("Content-Security-Policy")?.split("; ") ?? [];
      for (const part of ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"]) {
        assert.ok(policy.includes(part), `${path}: ${policy}`);
      }
      assert.ok(!policy.some((part) => /unsafe|\*|https?:|data:/.test(part)), `${path}: ${policy}`);
      assert.equal(headers.get("Cross-Origin-Opener-Policy"), "same-origin");
      assert.equal(headers.get("Cache-Control"), "no-store");
      assert.match(headers.get("Referrer-Policy") ?? "", /^(no-referrer|same-origin)$/);
    }
    const style = await headersOf(`${url}/console/style.css`, 200);
    assert.equal(style.get("Cache-Control"), "max-age=60");
    const live = await headersOf(`${url}/console/live`, 200);
    assert.equal(live.get("Content-Type"), "text/event-stream");
  }
});
