// G-101 by plain HTTP: who has logged in at the issuer has a session, and nobody else gets one.
import assert from "node:assert/strict";
import { Browser, startLoginStack } from "../support/login.ts";

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
