// G-101: issuers that are slow, down, broken, or rotate their keys in the middle of a login.
import assert from "node:assert/strict";
import type { Endpoint, Fault } from "../../tools/issuer/faults.ts";
import { startIssuer } from "../../tools/issuer/issuer.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import { until } from "../../tools/servers/wait.ts";
import { assertError, call } from "../support/api.ts";
import { startGateway } from "../support/gateway.ts";
import { Browser, type LoginStack, type Page, startLoginStack } from "../support/login.ts";

const sentence = "nobody can log in right now, try again in a moment";

function assertUnavailable(page: Page, what: string): void {
  assert.equal(page.status, 503, `${what}: ${page.text.slice(-300)}`);
  assert.match(page.headers.get("Retry-After") ?? "", /^[1-9]\d*$/, what);
  assert.match(page.text, /Logging in does not work right now/, what);
  assert.deepEqual(page.headers.getSetCookie(), [], what);
}

const big = JSON.stringify({ filler: "x".repeat(2 * 1024 * 1024) });
const json = { "Content-Type": "application/json" };

const outages: Record<string, Fault> = {
  "a failure": { status: 500, body: "secret" },
  "an overload": { status: 503 },
  "a page instead of JSON": { status: 200, headers: { "Content-Type": "text/html" }, body: "<p>" },
  "half of the JSON": { status: 200, headers: json, body: '{"a":' },
  "a list": { status: 200, headers: json, body: "[]" },
  "nothing": { status: 200, headers: json, body: "" },
  "a huge answer": { status: 200, headers: json, body: big },
  "a redirect": { status: 302, headers: { Location: "/jwks/" } },
  "a closed connection": { instead: "close" },
};

async function afterPause(stack: LoginStack): Promise<void> {
  await stack.issuer.faults();
  await until("logins work again", async () => {
    const { status, body } = await fetch(`${stack.url}/login`, { redirect: "manual" });
    await body?.cancel();
    return status === 302;
  });
}

Deno.test("G-101: an issuer that can't be found out about: 503, and logins work as soon as it does", async () => {
  await using stack = await startLoginStack();
  const metadata: Record<string, Fault> = {
    "another issuer": { json: { issuer: "https://other.example" } },
    "no issuer": { json: { issuer: null } },
    "no keys": { json: { jwks_uri: null } },
    "a huge description": { json: { filler: "x".repeat(2 * 1024 * 1024) } },
    "no place to log in": { json: { authorization_endpoint: null } },
    "a script to log in": { json: { authorization_endpoint: "javascript:alert(1)" } },
  };
  for (const [what, fault] of Object.entries({ ...outages, ...metadata })) {
    // A gateway that has not asked yet.
    await using gateway = await startGateway(stack.account, stack.settings);
    await stack.issuer.faults({ at: { discovery: fault } });
    assertUnavailable(await new Browser().open(`${gateway.url}/login`), what);
  }
  const { url } = stack;
  await stack.issuer.faults({ at: { discovery: { status: 500 } } });
  const refused = await call(`${url}/login`);
  assertError(refused, 503, "ISSUER_UNAVAILABLE", sentence);
  // It is not asked again by each of them.
  const { discovery: before = 0 } = await stack.issuer.count();
  for (let i = 0; i < 20; i++) await call(`${url}/login`);
  const { discovery: after = 0 } = await stack.issuer.count();
  assert.ok(after - before <= 1, `${after - before} requests`);
  await afterPause(stack);
  assert.equal((await new Browser().logIn(url)).location, `${url}/`);
  const lines = stack.gateway.log.map(({ message }) => message);
  assert.ok(lines.includes("The issuer answers again"), lines.join("\n"));
});

Deno.test("G-101: an issuer that fails in the middle of a login: 503 and no session", async () => {
  await using stack = await startLoginStack();
  for (const endpoint of ["token", "keys"] satisfies Endpoint[]) {
    for (const [what, fault] of Object.entries(outages)) {
      const browser = new Browser();
      const callback = await browser.callback(stack.url);
      await stack.issuer.faults({ at: { [endpoint]: fault } });
      const page = await browser.open(callback);
      await stack.issuer.faults();
      const where = `${endpoint}: ${what}`;
      // JSON of another form may be an answer to what a browser has made up.
      if (what === "a list") assert.equal(page.location, `${stack.url}/login?error`, where);
      else assertUnavailable(page, where);
      assert.equal(await browser.me(stack.url), 401, where);
    }
  }
  assert.equal((await new Browser().logIn(stack.url)).location, `${stack.url}/`);
  const log = JSON.stringify(stack.gateway.log);
  assert.ok(!/secret|code=|eyJ/.test(log), log);
});

Deno.test("G-101: an issuer that hangs is waited for no longer than the deadline of a login", async () => {
  await using stack = await startLoginStack();
  for (const endpoint of ["token", "keys"] satisfies Endpoint[]) {
    const browser = new Browser();
    const callback = await browser.callback(stack.url);
    await stack.issuer.faults({ at: { [endpoint]: { instead: "hang" } } });
    const from = performance.now();
    assertUnavailable(await browser.open(callback), endpoint);
    const tookMs = performance.now() - from;
    assert.ok(tookMs > 4_500 && tookMs < 8_000, `${tookMs} ms`);
    await stack.issuer.faults();
  }
  // Slow, but in time.
  await stack.issuer.faults({ everywhere: { delayMs: 400 } });
  assert.equal((await new Browser().logIn(stack.url)).location, `${stack.url}/`);
});

Deno.test("G-101: an issuer that is not there: 503, and logins work as soon as it is", async () => {
  const port = freePort();
  const secret = crypto.randomUUID();
  await using stack = await startLoginStack({ GATEWAY_CLIENT_SECRET: secret });
  const at = `http://127.0.0.1:${port}`;
  await using gateway = await startGateway(stack.account, {
    ...stack.settings,
    GATEWAY_ISSUER: at,
  });
  assertUnavailable(await new Browser().open(`${gateway.url}/login`), "it never was");
  await using _issuer = await startIssuer({ port, clientSecret: secret });
  const browser = new Browser();
  await until("logins work", async () => {
    return (await browser.open(`${gateway.url}/login`)).status === 302;
  });
});

Deno.test("G-101: keys that rotate are accepted at once, because each login fetches them", async () => {
  await using stack = await startLoginStack();
  const browser = new Browser();
  const callback = await browser.callback(stack.url);
  await stack.issuer.rotateKeys();
  assert.equal((await browser.open(callback)).location, `${stack.url}/`);
  for (let i = 0; i < 3; i++) {
    await stack.issuer.rotateKeys();
    assert.equal((await new Browser().logIn(stack.url)).location, `${stack.url}/`);
  }
  const { keys = 0 } = await stack.issuer.count();
  assert.equal(keys, 4, "the keys are fetched for each login");
});

Deno.test("a wrong secret of the gateway is said in the log, and is no fault of the user", async () => {
  await using stack = await startLoginStack({ GATEWAY_CLIENT_SECRET: "wrong" });
  assertUnavailable(await new Browser().logIn(stack.url), "wrong secret");
  const [line] = stack.gateway.log.filter(({ message }) => message.startsWith("Nobody can log in"));
  assert.equal(line?.["reason"], "it refuses gateway.client-id or gateway.client-secret");
  // Other issuers say so without a challenge.
  const body = '{"error":"invalid_client"}';
  await stack.issuer.faults({ at: { token: { status: 400, headers: json, body } } });
  assertUnavailable(await new Browser().logIn(stack.url), "without a challenge");
});

Deno.test("a server of the issuer that no setting names is said in the log", async () => {
  await using stack = await startLoginStack();
  const elsewhere = { token_endpoint: "http://127.0.0.2:9999/token" };
  await stack.issuer.faults({ at: { discovery: { json: elsewhere } } });
  assertUnavailable(await new Browser().logIn(stack.url), "a server that is not named");
  const [line] = stack.gateway.log.filter(({ message }) => message.startsWith("Nobody can log in"));
  const reason = "neither gateway.issuer nor gateway.issuer-servers names 127.0.0.2:9999";
  assert.equal(line?.["reason"], reason);
});
