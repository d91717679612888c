// The issuer announces that somebody has logged out there: their sessions end on every replica.
import assert from "node:assert/strict";
import type { Forged } from "../../tools/issuer/faults.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Answer, assertError, call } from "../support/api.ts";
import { startGateway } from "../support/gateway.ts";
import { Browser, type LoginStack, startLoginStack } from "../support/login.ts";

const event = "http://schemas.openid.net/event/backchannel-logout";
const seconds = () => Math.floor(Date.now() / 1_000);

function announce(url: string, token: string | undefined): Promise<Answer> {
  return call(`${url}/logout/backchannel`, {
    method: "POST",
    body: new URLSearchParams(token === undefined ? {} : { logout_token: token }),
  });
}

function goodToken({ issuer }: LoginStack): Forged {
  return {
    typ: "logout+jwt",
    claims: {
      iss: issuer.url,
      aud: issuer.clientId,
      sub: "ann",
      iat: seconds(),
      exp: seconds() + 120,
      jti: crypto.randomUUID(),
      events: { [event]: {} },
    },
  };
}

async function logOutAt(issuer: string, browser: Browser): Promise<void> {
  const { text } = await browser.open(`${issuer}/session/end`);
  const [, xsrf = ""] = /name="xsrf" value="([^"]+)"/.exec(text) ?? [];
  const body = new URLSearchParams({ xsrf, logout: "yes" });
  const ended = await browser.open(`${issuer}/session/end/confirm`, { method: "POST", body });
  assert.equal(ended.status, 303, ended.text);
}

Deno.test("who logs out at the issuer loses the session of that browser, on every replica", async () => {
  await using stack = await startLoginStack();
  await using replica = await startGateway(stack.account, stack.settings);
  await stack.issuer.announceTo(`${stack.url}/logout/backchannel`);
  const [here, there] = [new Browser(), new Browser()];
  await here.logIn(stack.url);
  await there.logIn(stack.url);
  for (const url of [stack.url, replica.url]) assert.equal(await here.me(url), 200);
  await logOutAt(stack.issuer.url, here);
  for (const url of [stack.url, replica.url]) {
    await until("the session has ended", async () => await here.me(url) === 401, 2_000);
    assert.equal(await there.me(url), 200, "another session of the same user");
  }
});

Deno.test("a logout token without a session ends all that the user began", async () => {
  await using stack = await startLoginStack();
  const browsers = [new Browser(), new Browser(), new Browser()];
  for (const browser of browsers) await browser.logIn(stack.url);
  const other = new Browser();
  await other.logIn(stack.url, "bob");
  const token = await stack.issuer.sign(goodToken(stack));
  assert.equal((await announce(stack.url, token)).status, 200);
  for (const browser of browsers) {
    await until("it has ended", async () => await browser.me(stack.url) === 401, 2_000);
  }
  assert.equal(await other.me(stack.url), 200);
  await browsers[0]?.logIn(stack.url);
  assert.equal(await browsers[0]?.me(stack.url), 200, "a later session");
  // Of somebody who never logged in.
  const { claims, ...how } = goodToken(stack);
  const unknown = await stack.issuer.sign({ ...how, claims: { ...claims, sub: "nobody" } });
  assert.equal((await announce(stack.url, unknown)).status, 200);
});

Deno.test("an issuer that need not name its sessions in ID tokens ends all that the user began", async () => {
  await using stack = await startLoginStack();
  await stack.issuer.faults({
    at: { discovery: { json: { backchannel_logout_session_supported: null } } },
    idToken: { claims: { sid: null } },
  });
  const browser = new Browser();
  await browser.logIn(stack.url);
  const { claims, ...how } = goodToken(stack);
  const token = await stack.issuer.sign({ ...how, claims: { ...claims, sid: "s-1" } });
  assert.equal((await announce(stack.url, token)).status, 200);
  await until("it has ended", async () => await browser.me(stack.url) === 401, 2_000);
});

Deno.test("a logout token that can't be believed ends nothing", async () => {
  await using stack = await startLoginStack();
  const browser = new Browser();
  await browser.logIn(stack.url);
  const cases: Record<string, Partial<Forged>> = {
    "another issuer": { claims: { iss: "https://other.example" } },
    "another audience": { claims: { aud: "other" } },
    "expired": { claims: { exp: seconds() - 60 } },
    "old": { claims: { iat: seconds() - 600 } },
    "of the future": { claims: { iat: seconds() + 600 } },
    "no time": { claims: { iat: null } },
    "no id": { claims: { jti: null } },
    "no subject": { claims: { sub: null } },
    "an empty subject": { claims: { sub: "" } },
    "a session that is no text": { claims: { sid: 17 } },
    "a nonce": { claims: { nonce: "n" } },
    "no event": { claims: { events: null } },
    "another event": { claims: { events: { "https://other.example": {} } } },
    "an event that is no object": { claims: { events: { [event]: true } } },
    "another type": { typ: "at+jwt" },
    "a wrong signature": { by: "wrong signature" },
    "an unpublished key": { by: "unpublished key" },
    "the public key as a secret": { by: "public key as secret" },
    "no signature": { by: "nobody" },
  };
  const good = goodToken(stack);
  for (const [what, { claims, ...how }] of Object.entries(cases)) {
    const forged = { ...good, ...how, claims: { ...good.claims, ...claims } };
    const answer = await announce(stack.url, await stack.issuer.sign(forged));
    assert.equal(answer.status, 400, `${what}: ${answer.text}`);
    assert.equal(answer.json.code, "BAD_REQUEST", what);
  }
  const message = "logout_token is not a valid logout token of the issuer";
  assertError(await announce(stack.url, undefined), 400, "BAD_REQUEST", "request body is required");
  for (const token of ["", "x", "a.b.c", `${await stack.issuer.sign(good)}x`]) {
    assertError(await announce(stack.url, token), 400, "BAD_REQUEST", message);
  }
  const json = await call(`${stack.url}/logout/backchannel`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: "{}",
  });
  assertError(json, 415, "UNSUPPORTED_MEDIA_TYPE");
  assert.equal((await call(`${stack.url}/logout/backchannel`)).status, 405);
  assert.equal(await browser.me(stack.url), 200);
});

Deno.test("while the issuer's keys or the accounts can't be reached, the issuer may announce again", async () => {
  await using stack = await startLoginStack();
  await stack.issuer.faults({ at: { keys: { status: 500 } } });
  const token = await stack.issuer.sign(goodToken(stack));
  assertError(await announce(stack.url, token), 503, "ISSUER_UNAVAILABLE");
  await stack.issuer.faults();
  await until("it works again", async () => (await announce(stack.url, token)).status === 200);
  stack.account.service.signal("SIGSTOP");
  const stopped = await announce(stack.url, token);
  stack.account.service.signal("SIGCONT");
  assertError(stopped, 504, "ACCOUNT_TIMEOUT");
});
