import assert from "node:assert/strict";
import { cookiesOf } from "./cookies.ts";

Deno.test("over HTTPS the cookies belong to this host alone, and no script reads them", () => {
  const cookies = cookiesOf("https://play.example");
  assert.deepEqual([cookies.session, cookies.login], ["__Host-kenri", "__Host-kenri-login"]);
  const [value, ...attributes] = cookies.set(cookies.session, "x", 1_999).split("; ");
  assert.equal(value, "__Host-kenri=x");
  assert.deepEqual(attributes.sort(), [
    "HttpOnly",
    "Max-Age=1",
    "Path=/",
    "SameSite=Lax",
    "Secure",
  ]);
  assert.match(cookies.clear(cookies.session), /^__Host-kenri=; Max-Age=0; .*; Secure$/);
});

Deno.test("over HTTP, on this machine, they have another name and can't be secure", () => {
  const cookies = cookiesOf("http://localhost:8000");
  assert.deepEqual([cookies.session, cookies.login], ["kenri", "kenri-login"]);
  assert.doesNotMatch(cookies.set(cookies.session, "x", 1_000), /Secure|Domain/);
});
