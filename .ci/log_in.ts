// Logs in at the gateway of compose.yaml, with an issuer of its own at the place of Keycloak.
import assert from "node:assert/strict";
import { Browser } from "../tests/support/login.ts";
import { startIssuer } from "../tools/issuer/issuer.ts";

const gateway = "http://localhost:8000";
const clientSecret = Deno.env.get("GATEWAY_CLIENT_SECRET") ?? "";
await using issuer = await startIssuer({ port: 8180, clientId: "kenri", clientSecret });
const browser = new Browser();
assert.equal(await browser.me(gateway), 401);
const { status, text } = await browser.logIn(gateway);
assert.equal(status, 302, text);
const json = JSON.parse((await browser.open(`${gateway}/v1/me`)).text);
assert.equal(json.account_status, "ACTIVE");
const own = `${gateway}/v1/users/${json.user_id}`;
const profile = await browser.open(`${own}/profile`);
assert.equal(profile.status, 200, profile.text);
for (const path of ["entitlements", "points", "notifications"]) {
  const answer = await browser.open(`${own}/${path}`);
  assert.equal(answer.status, 200, `${path}: ${answer.text}`);
}
console.log(`${json.user_id} has logged in at ${issuer.url}`);
