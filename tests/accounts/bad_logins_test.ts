// G-101: what is wrong with a login, and what then happens: no session, a clear answer, nothing leaked.
import assert from "node:assert/strict";
import type { Forged } from "../../tools/issuer/faults.ts";
import { Seals } from "../../gateway/session/seal.ts";
import { assertError, call } from "../support/api.ts";
import { sessionKey, startGateway } from "../support/gateway.ts";
import { Browser, type LoginStack, type Page, startLoginStack } from "../support/login.ts";

const seconds = () => Math.floor(Date.now() / 1_000);

// Refused: back to the login, which says so, as a page and as JSON; and no session.
async function assertRefused(
  { url }: LoginStack,
  browser: Browser,
  page: Page,
  what: string,
): Promise<void> {
  assert.deepEqual([page.status, page.location], [302, `${url}/login?error`], what);
  assert.equal(browser.cookie("kenri"), undefined, what);
  assert.equal(await browser.me(url), 401, what);
}

Deno.test("G-101: a failed login is answered 401, as a page or as JSON", async () => {
  await using stack = await startLoginStack();
  const page = await new Browser().open(`${stack.url}/login?error`);
  assert.equal(page.status, 401);
  assert.match(page.headers.get("Content-Type") ?? "", /^text\/html/);
  assert.match(page.headers.get("Content-Security-Policy") ?? "", /^default-src 'none'/);
  assert.match(page.text, /You are not logged in.*href="\/login"/s);
  const error = await call(`${stack.url}/login?error=access_denied`);
  assertError(error, 401, "LOGIN_FAILED", "the login failed, log in again");
});

const badTokens: Record<string, Partial<Forged>> = {
  "another issuer": { claims: { iss: "https://other.example" } },
  "the issuer with a slash": { claims: { iss: "slash" } },
  "no issuer": { claims: { iss: null } },
  "another audience": { claims: { aud: "other" } },
  "a list of other audiences": { claims: { aud: ["other", "another"] } },
  "an audience among others, for another party": {
    claims: { aud: ["kenri-gateway", "other"], azp: "other" },
  },
  "no audience": { claims: { aud: null } },
  "another nonce": { claims: { nonce: "n" } },
  "no nonce": { claims: { nonce: null } },
  "expired": { claims: { exp: seconds() - 120 } },
  "no expiry": { claims: { exp: null } },
  "an expiry that is no number": { claims: { exp: "tomorrow" } },
  "no time of issue": { claims: { iat: null } },
  "not valid yet": { claims: { nbf: seconds() + 3_600 } },
  "no subject": { claims: { sub: null } },
  "an empty subject": { claims: { sub: "" } },
  "a subject that is no text": { claims: { sub: 17 } },
  "a subject of 256 characters": { claims: { sub: "s".repeat(256) } },
  "a subject with a line break": { claims: { sub: "ann\nbob" } },
  "a wrong signature": { by: "wrong signature" },
  "a key that the issuer does not publish": { by: "unpublished key" },
  "the public key as a secret": { by: "public key as secret" },
  "no signature": { by: "nobody" },
};

Deno.test("G-101: an ID token with a wrong claim or signature begins no session", async () => {
  await using stack = await startLoginStack();
  const slash = `${stack.issuer.url}/`;
  for (const [what, idToken] of Object.entries(badTokens)) {
    if (idToken.claims?.["iss"] === "slash") idToken.claims["iss"] = slash;
    await stack.issuer.faults({ idToken });
    const browser = new Browser();
    await assertRefused(stack, browser, await browser.logIn(stack.url), what);
  }
  await stack.issuer.faults({ idToken: { claims: { exp: seconds() + 60, azp: "kenri-gateway" } } });
  assert.equal((await new Browser().logIn(stack.url)).location, `${stack.url}/`);
  const [users] = await stack.account.rows("select count(*)::int from users");
  assert.deepEqual(users, { count: 1 });
  // Each is logged with its kind, and with nothing of it.
  const reasons = new Set(
    stack.gateway.log.filter(({ message }) => message.startsWith("A login was refused"))
      .map(({ reason }) => reason),
  );
  assert.deepEqual([...reasons].sort(), [
    "expired token",
    "invalid answer or signature",
    "unknown key",
    "unusable subject",
    "wrong claim",
  ]);
});

// The url of a callback with other parameters; null removes one.
function changed(callback: string, parameters: Record<string, string | null>): string {
  const url = new URL(callback);
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  return url.href;
}

Deno.test("G-101: a callback with a wrong state, code or issuer begins no session", async () => {
  await using stack = await startLoginStack();
  const key = Uint8Array.fromBase64(sessionKey, { alphabet: "base64url" });
  const seals = new Seals([key]);
  const someone = crypto.randomUUID();
  const own = { nonce: "n", verifier: "v".repeat(43), return_to: "/", browser: someone };
  const later = Date.now() + 60_000;
  const good = await new Browser().callback(stack.url);
  const stateOf = (callback: string) => new URL(callback).searchParams.get("state") ?? "";
  const cases: Record<string, Record<string, string | null>> = {
    "no state": { state: null },
    "an empty state": { state: "" },
    "a made up state": { state: "s" },
    "a state of another login": { state: stateOf(good) },
    "a state with another content": { state: await seals.seal("state", own, later) },
    "a state without content": { state: await seals.seal("state", {}, later) },
    "a state that has expired": { state: await seals.seal("state", own, Date.now() - 1) },
    "a cookie of a session as state": { state: await seals.seal("session", own, later) },
    "no code": { code: null },
    "an empty code": { code: "" },
    "a made up code": { code: "c" },
    "a code of another login": { code: new URL(good).searchParams.get("code") },
    "a long code": { code: "c".repeat(8_000) },
    "no issuer": { iss: null },
    "another issuer": { iss: "https://other.example" },
    "an error": { error: "access_denied", code: null },
    "an error beside a code": { error: "server_error" },
    "tokens instead of a code": { id_token: "t" },
    "a signed answer": { response: "t" },
  };
  for (const [what, parameters] of Object.entries(cases)) {
    const browser = new Browser();
    const callback = await browser.callback(stack.url);
    const page = await browser.open(changed(callback, parameters));
    await assertRefused(stack, browser, page, what);
  }
  const browser = new Browser();
  const callback = await browser.callback(stack.url);
  for (const name of ["state", "code", "iss"]) {
    const twice = `${callback}&${name}=${new URL(callback).searchParams.get(name)}`;
    await assertRefused(stack, browser, await browser.open(twice), `${name} twice`);
  }
});

Deno.test("G-101: a state that was changed by one bit is refused, wherever it is", async () => {
  await using stack = await startLoginStack();
  const browser = new Browser();
  const callback = await browser.callback(stack.url);
  const state = new URL(callback).searchParams.get("state") ?? "";
  for (let at = 0; at < state.length; at += 7) {
    const other = String.fromCharCode(state.charCodeAt(at) ^ 1);
    const url = changed(callback, { state: state.slice(0, at) + other + state.slice(at + 1) });
    await assertRefused(stack, browser, await browser.open(url), `character ${at}`);
  }
  assert.equal((await browser.open(callback)).location, `${stack.url}/`);
});

Deno.test("G-101: a callback works once, and only in the browser that began the login", async () => {
  await using stack = await startLoginStack();
  const [ann, bob] = [new Browser(), new Browser()];
  const [ofAnn, ofBob] = [await ann.callback(stack.url), await bob.callback(stack.url, "bob")];
  // Each opens the url of the other, as if somebody had sent it.
  await assertRefused(stack, bob, await bob.open(ofAnn), "crossed");
  await assertRefused(stack, ann, await ann.open(ofBob), "crossed");
  await assertRefused(stack, new Browser(), await new Browser().open(ofAnn), "without a cookie");
  const forged = new Browser();
  forged.cookies = [{ name: "kenri-login", value: "x", path: "/" }];
  await assertRefused(stack, forged, await forged.open(ofAnn), "with a made up cookie");
  assert.equal((await ann.open(ofAnn)).location, `${stack.url}/`);
  assert.equal(await ann.me(stack.url), 200);
  // Again: the issuer accepts a code once.
  const { cookies } = ann;
  ann.cookies = cookies.filter(({ name }) => name !== "kenri");
  await assertRefused(stack, ann, await ann.open(ofAnn), "replayed");
  assert.equal((await bob.open(ofBob)).location, `${stack.url}/`);
});

Deno.test("G-101: tabs of one browser log in at the same time, and any replica takes them", async () => {
  await using stack = await startLoginStack();
  await using other = await startGateway(stack.account, stack.settings);
  const browser = new Browser();
  const callbacks: string[] = [];
  for (let tab = 0; tab < 3; tab++) {
    callbacks.push(await browser.begin(stack.url, `?return_to=/${tab}`));
  }
  for (const [tab, at] of callbacks.entries()) {
    const callback = await browser.logInAt(at, "ann");
    const page = await browser.open(callback.replace(stack.url, other.url));
    assert.deepEqual([page.status, new URL(page.location).pathname], [302, `/${tab}`], page.text);
    assert.equal(await browser.me(stack.url), 200);
  }
});

Deno.test("G-101: claims that the account can't store are left out", async () => {
  await using stack = await startLoginStack();
  const bad: Record<string, unknown[]> = {
    name: ["n".repeat(256), "", "  ", "a\u0000b", "\ud800", 17, { given: "Ann" }],
    email: ["e".repeat(256), "", "a\nb", ["ann@example.com"]],
    email_verified: ["true", 1],
    picture: ["no url", "javascript:alert(1)", `https://x.example/${"p".repeat(2_048)}`, 17],
    sid: [17, "", "s".repeat(300)],
  };
  for (const [claim, values] of Object.entries(bad)) {
    for (const [at, value] of values.entries()) {
      await stack.issuer.faults({ idToken: { claims: { [claim]: value } } });
      const page = await new Browser().logIn(stack.url, `${claim.replace("_", "-")}-${at}`);
      assert.equal(page.location, `${stack.url}/`, `${claim} ${at}: ${page.text}`);
    }
  }
  const stored = await stack.account.rows(
    `select subject from identities join users using (user_id)
    where email is not null or email_verified is not null or display_name is not null
      or picture is not null`,
  );
  assert.deepEqual(stored, []);
});

Deno.test("G-101: a suspended user gets no session, and a page or JSON that says so", async () => {
  await using stack = await startLoginStack();
  const browser = new Browser();
  await browser.logIn(stack.url);
  const { user_id } = (await call(`${stack.url}/v1/me`, {
    headers: { Cookie: `kenri=${browser.cookie("kenri")}` },
  })).json;
  const suspended = await call(`${stack.account.url}/v1/users/${user_id}:suspend`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ reason: "spam" }),
  });
  assert.equal(suspended.status, 204);
  for (const accept of ["text/html", "application/json"]) {
    const other = new Browser();
    const callback = await other.callback(stack.url);
    const page = await other.open(callback, { headers: { Accept: accept } });
    assert.equal(page.status, 403, page.text);
    assert.match(
      page.text,
      accept === "text/html" ? /Your account is suspended/ : /ACCOUNT_INACTIVE/,
    );
    assert.equal(other.cookie("kenri"), undefined);
  }
});
