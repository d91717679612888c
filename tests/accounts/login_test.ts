// G-101 by plain HTTP: who has logged in at the issuer has a session, and nobody else gets one.
import assert from "node:assert/strict";
import type { Fault } from "../../tools/issuer/faults.ts";
import { me } from "../support/gateway.ts";
import { Browser, startLoginStack } from "../support/login.ts";
import { scrapeOf } from "../support/metrics.ts";

Deno.test("G-101: a user logs in at the issuer and has a session", async () => {
  await using stack = await startLoginStack();
  const browser = new Browser();
  assert.equal(await browser.me(stack.url), 401);
  const at = new URL(await browser.begin(stack.url, "?return_to=/orders?page=2"));
  assert.equal(at.origin, stack.issuer.url);
  const { state, nonce, code_challenge, ...asked } = Object.fromEntries(at.searchParams);
  assert.deepEqual(asked, {
    client_id: stack.issuer.clientId,
    code_challenge_method: "S256",
    redirect_uri: `${stack.url}/login/callback`,
    response_type: "code",
    scope: "openid email profile",
  });
  for (const random of [state, nonce, code_challenge]) assert.ok((random ?? "").length >= 43);
  const page = await browser.open(await browser.logInAt(at.href, "ann"));
  assert.equal(page.status, 302, page.text);
  assert.equal(page.location, `${stack.url}/orders?page=2`);
  assert.equal(await browser.me(stack.url), 200);
  const users = await stack.account.rows(
    `select provider, subject, email, email_verified, display_name
    from identities join users using (user_id)`,
  );
  assert.deepEqual(users, [{
    provider: stack.issuer.url,
    subject: "ann",
    email: "ann@example.com",
    email_verified: true,
    display_name: "Ann Archer",
  }]);
});

Deno.test("an issuer may say only at its user info what a user's name is, or not at all", async () => {
  await using stack = await startLoginStack();
  const idToken = { claims: { name: null, email: null, email_verified: null } };
  const cases: Record<string, [Fault, string | null]> = {
    answering: [{}, "Ann Archer"],
    failing: [{ status: 500 }, null],
    closed: [{ instead: "close" }, null],
    garbled: [{ status: 200, headers: { "Content-Type": "application/json" }, body: "{" }, null],
    other: [{ json: { sub: "bob" } }, null],
  };
  for (const [user, [userinfo, name]] of Object.entries(cases)) {
    await stack.issuer.setUsers({ [user]: { name: "Ann Archer", email: "ann@example.com" } });
    await stack.issuer.faults({ idToken, at: { userinfo } });
    const browser = new Browser();
    assert.equal((await browser.logIn(stack.url, user)).location, `${stack.url}/`, user);
    const stored = await stack.account.rows<{ display_name: string }>(
      "select display_name from users join identities using (user_id) where subject = $1",
      [user],
    );
    assert.deepEqual(stored, [{ display_name: name }], user);
  }
});

Deno.test("who logs in as another user ends the session of the one before", async () => {
  await using stack = await startLoginStack();
  const [browser, issuers] = [new Browser(), new Browser()];
  await browser.logIn(stack.url);
  const before = { cookie: `kenri=${browser.cookie("kenri")}` };
  const logInBob = async () => { // at the issuer the first one is forgotten
    const back = await issuers.logInAt(await browser.begin(stack.url), "bob");
    assert.equal((await browser.open(back)).status, 302);
  };
  await logInBob();
  assert.equal(
    (await me(stack.gateway, before)).status,
    401,
    "what answers late brings nobody back",
  );
  assert.equal(await browser.me(stack.url), 200);
  const bobs = { cookie: `kenri=${browser.cookie("kenri")}` };
  await logInBob();
  assert.equal((await me(stack.gateway, bobs)).status, 200, "another session of the same user");
});

Deno.test("each login is counted once, by how it ended", async () => {
  await using stack = await startLoginStack();
  const { url, issuer } = stack;
  const counts = async () => {
    const { samples } = await scrapeOf(stack.gateway);
    const found = samples.filter(({ name }) => name === "gateway_login_total");
    return Object.fromEntries(found.map(({ labels, value }) => [labels["result"], value]));
  };
  await new Browser().logIn(url);
  await new Browser().logIn(url, "bob");
  const used = new Browser();
  const callback = await used.callback(url);
  await used.open(callback);
  const again = await used.open(callback);
  assert.equal((await used.open(again.location)).status, 401);
  assert.equal((await used.open(`${url}/login?return_to=//other.example`)).status, 400);
  const late = new Browser();
  const unanswered = await late.callback(url, "kim");
  await issuer.faults({ at: { token: { status: 500 } } });
  assert.equal((await late.open(unanswered)).status, 503);
  assert.deepEqual(await counts(), { completed: 3, refused: 1, unavailable: 1, error: 0 });
});
