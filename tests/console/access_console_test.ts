// The console with credentials: a person signs in with one, and the pages show only what its scopes
// allow.
import assert from "node:assert/strict";
import type { Scope } from "../../proto/scopes.ts";
import { newToken } from "../../shared/access/tokens.ts";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { assertError, call } from "../support/api.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { type Issuer, startIssuer } from "../access/issuer.ts";
import { browserOf, formTokenIn, signIn } from "./persons.ts";
import { insertEvents, untilAll } from "../support/outbox.ts";
import { sendRaw } from "../http/raw_http.ts";
import { look, type Stack, startStack } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

const reader = newClient("kim", "debug:read");
const operator = newClient("lee", "debug:read", "operations:write", "notifications:read");
const shop = newClient("shop", "entitlements:write");
const page = { Accept: "text/html" };

let issuer: Issuer;
let stack: Stack;
Deno.test.beforeAll(async () => {
  issuer = await startIssuer();
  const settings = { ...issuer.settings, ...tokensOf(reader, operator, shop) };
  stack = await startStack({ entitlement: settings, notification: settings });
});
Deno.test.afterAll(async () => {
  await stack[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});

const publicPaths = ["/console/sign-in", "/console/style.css", "/console/icon.svg"];
const paths: Record<"entitlement" | "notification", [string, Scope][]> = {
  entitlement: [
    ["/console", "debug:read"],
    ["/console/timeline?by=user_id&q=ann", "debug:read"],
    ["/console/reconciliation", "debug:read"],
    ["/console/points", "debug:read"],
    ["/console/dead-letters", "debug:read"],
    [
      "/console/dead-letters/one?layer=outbox&id=00000000-0000-7000-8000-000000000000",
      "debug:read",
    ],
    ["/console/dead-letters/send-back?layer=outbox", "operations:write"],
    ["/console/operations", "debug:read"],
    ["/console/live", "debug:read"],
    ["/console/live.js", "debug:read"],
    ["/console/sign-out", "debug:read"],
  ],
  notification: [
    ["/console", "debug:read"],
    ["/console/inbox?user_id=ann", "notifications:read"],
    ["/console/orders", "debug:read"],
    ["/console/endpoints", "debug:read"],
    ["/console/endpoints/replay", "operations:write"],
    ["/console/dead-letters/send-back?layer=delivery", "operations:write"],
  ],
};

async function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  const answer = await fetch(url, { headers, redirect: "manual" });
  await answer.body?.cancel();
  return answer.status;
}

const forged = (service: string) => ({ Cookie: `kenri-${service}=${newToken()}` });

// Signs in and returns the cookies of the browser.
async function sessionAt(url: string, token: string): Promise<{ Cookie: string }> {
  const browser = browserOf(url);
  assert.equal((await signIn(browser, token)).status, 303);
  return { Cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join("; ") };
}

Deno.test("the table of this test has every page that the console links to", async () => {
  for (const service of ["entitlement", "notification"] as const) {
    const headers = bearer(operator.token);
    const { text } = await call(`${stack[service].url}/console`, { headers });
    const known = new Set(Object.values(paths).flat().map(([path]) => path.split("?")[0]));
    for (const [, path = ""] of text.matchAll(/(?:href|src|action)="(\/console[^"?]*)/g)) {
      assert.ok(known.has(path) || publicPaths.includes(path), path);
    }
  }
});

Deno.test("every page needs its scope, and leads a person without a session to sign in", async () => {
  const scraper = newClient("scraper", "metrics:read");
  const settings = tokensOf(scraper, reader, operator);
  await using own = await startStack({ entitlement: settings, notification: settings });
  for (const service of ["entitlement", "notification"] as const) {
    const ofOperator = await sessionAt(own[service].url, operator.token);
    const ofReader = await sessionAt(own[service].url, reader.token);
    for (const [path, scope] of paths[service]) {
      const url = own[service].url + path;
      const nobody = await fetch(url, { headers: page, redirect: "manual" });
      await nobody.body?.cancel();
      assert.deepEqual([nobody.status, nobody.headers.get("Location")], [303, "/console/sign-in"]);
      assertError(await call(url), 401, "UNAUTHORIZED");
      assert.equal(await statusOf(url, { ...page, ...forged(service) }), 303, path);
      assertError(await call(url, { headers: bearer(newToken()) }), 401, "UNAUTHORIZED");
      const lacking = scope === "debug:read"
        ? [bearer(scraper.token)]
        : [bearer(reader.token), ofReader];
      for (const shown of lacking) {
        assert.equal(await statusOf(url, { ...page, ...shown }), 403, path);
      }
      for (const shown of [bearer(operator.token), ofOperator]) {
        const status = await statusOf(url, { ...page, ...shown });
        assert.ok([200, 404].includes(status), `${path}: ${status}`);
      }
    }
    for (const path of publicPaths) {
      assert.equal(await statusOf(own[service].url + path, {}), 200, path);
    }
  }
});

const local = "kenri-entitlement";

Deno.test("a person signs in, looks, and signs out; the cookie is for this console alone", async () => {
  const browser = browserOf(stack.entitlement.url);
  assert.equal((await browser.visit("/console")).location, "/console/sign-in");
  const signedIn = await signIn(browser, ` ${reader.token} `);
  assert.deepEqual([signedIn.status, signedIn.location], [303, "/console"]);
  assert.equal(browser.rules.get(local), "Path=/console; HttpOnly; SameSite=Strict");
  assert.equal((await browser.visit("/console")).status, 200);
  const out = await browser.visit("/console/sign-out");
  assert.match(out.html, /You are signed in as <b>kim<\/b>, with the scopes debug:read\./);
  assert.doesNotMatch(out.html, /kenri_[0-9a-f]/);
  const left = await browser.visit("/console/sign-out", { token: formTokenIn(out.html) });
  assert.deepEqual([left.status, left.location], [303, "/console/sign-in"]);
  assert.ok(!browser.cookies.has(local));
  assert.equal((await browser.visit("/console")).status, 303);
});

Deno.test("a browser on another machine gets the cookie only for TLS", async () => {
  const { url } = stack.entitlement;
  const browser = browserOf(url);
  const { html } = await browser.visit("/console/sign-in");
  const body = `${new URLSearchParams({
    token: formTokenIn(html),
    credential: reader.token,
  })}`;
  const ruleFor = async (...headers: string[]) => {
    const request = [
      "POST /console/sign-in HTTP/1.1",
      `Cookie: kenri_form=${browser.cookies.get("kenri_form")}`,
      "Content-Type: application/x-www-form-urlencoded",
      `Content-Length: ${body.length}`,
      "Sec-Fetch-Site: same-origin",
      ...headers,
      "",
      body,
    ];
    const answer = await sendRaw(url, request.join("\r\n"));
    assert.equal(answer?.status, 303);
    return answer?.headers.get("Set-Cookie") ?? "";
  };
  const secure = /__Host-kenri-entitlement=.*; Path=\/; HttpOnly; Secure; SameSite=Strict/;
  assert.match(await ruleFor("Host: kenri.example"), secure);
  assert.match(await ruleFor("Host: kenri.example", "Origin: http://kenri.example"), secure);
  // Behind a proxy the Host is an address of the service, but the Origin is what the browser sees.
  for (
    const origin of ["https://kenri.example", "http://kenri.example", "null", "https://localhost"]
  ) {
    assert.match(await ruleFor("Host: 127.0.0.1:8080", `Origin: ${origin}`), secure, origin);
  }
  const local = "127.0.0.1:8080";
  assert.doesNotMatch(await ruleFor(`Host: ${local}`, `Origin: http://${local}`), secure);
});

Deno.test("without an operator's credential nobody signs in, and a wrong one is not echoed", async () => {
  const browser = browserOf(stack.entitlement.url);
  const wrong = newToken();
  const tries: [string, number, RegExp][] = [
    [wrong, 401, /is unknown/],
    ["", 401, /is unknown/],
    [shop.token, 403, /the scope debug:read/],
    ["x".repeat(8_001), 400, /at most 8000/],
    [await issuer.sign({ sub: "kim", scope: "debug:read", inSeconds: -60 }), 401, /expired/],
  ];
  for (const [credential, status, message] of tries) {
    const answer = await signIn(browser, credential);
    assert.equal(answer.status, status, answer.html);
    assert.match(answer.html, message);
    if (credential !== "") assert.ok(!answer.html.includes(credential));
    assert.ok(!browser.cookies.has(local));
  }
});

Deno.test("a form of another page signs nobody in or out", async () => {
  const { url } = stack.entitlement;
  const browser = browserOf(url);
  const { html } = await browser.visit("/console/sign-in");
  const form = { token: formTokenIn(html), credential: reader.token };
  const foreign = { "Sec-Fetch-Site": "cross-site" };
  assert.equal((await browser.visit("/console/sign-in", form, foreign)).status, 403);
  const unsigned = { ...form, token: "0".repeat(32) };
  assert.equal((await browser.visit("/console/sign-in", unsigned)).status, 403);
  assert.ok(!browser.cookies.has(local));
  await signIn(browser, reader.token);
  assert.equal((await browser.visit("/console/sign-out", form, foreign)).status, 403);
  assert.equal((await browser.visit("/console/sign-out", unsigned)).status, 403);
  assert.equal((await browser.visit("/console")).status, 200);
});

Deno.test("a session ends with its credential", async () => {
  const browser = browserOf(stack.entitlement.url);
  const token = await issuer.sign({ sub: "kim", scope: "debug:read", inSeconds: -27 });
  assert.equal((await signIn(browser, token)).status, 303);
  await until("it has ended", async () => (await browser.visit("/console")).status === 303);
});

Deno.test("the cookie opens the console, and no endpoint for programs", async () => {
  const headers = await sessionAt(stack.entitlement.url, operator.token);
  for (const path of ["/metrics", "/debug/entitlement/status", "/consoles"]) {
    assertError(await call(stack.entitlement.url + path, { headers }), 401, "UNAUTHORIZED");
  }
});

Deno.test("sending back is logged under the name of the signed-in person, who is not asked for it", async () => {
  await using own = await startEntitlement({
    ...tokensOf(operator),
    ENTITLEMENT_DEBUG_ENABLED: "true",
  });
  const { url, database: { ownerUrl } } = own;
  const [id] = await insertEvents(ownerUrl, [{ key: "ann:sku", version: 1, payload: {} }]);
  await untilAll(ownerUrl, "FAILED");
  const browser = browserOf(url);
  await signIn(browser, operator.token);
  const path = "/console/dead-letters/send-back";
  const { html } = await browser.visit(`${path}?layer=outbox&id=${id}`);
  assert.match(html, /You are signed in as <b>lee<\/b>/);
  assert.doesNotMatch(html, /name="who"/);
  const fields = { token: formTokenIn(html), layer: "outbox", id: `${id}`, reason: "it is back" };
  assert.equal((await browser.visit(path, { ...fields, who: "somebody else" })).status, 303);
  const log = await look(url, "/debug/entitlement/operations", bearer(operator.token));
  assert.equal(log.operations[0].who, "lee");
});

Deno.test("the console's own access to the API can't be used from outside", async () => {
  const { url } = stack.entitlement;
  for (const name of ["caller", "X-Caller", "X-Forwarded-User", "Kenri-Caller"]) {
    const answer = await call(`${url}/metrics`, { headers: { [name]: "console" } });
    assertError(answer, 401, "UNAUTHORIZED");
  }
});
