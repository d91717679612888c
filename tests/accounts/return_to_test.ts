// G-107: after a login a browser returns to this site, whatever return_to contains.
import assert from "node:assert/strict";
import { Browser, startLoginStack } from "../support/login.ts";

const elsewhere = [
  "https://evil.example",
  "http://evil.example/",
  "HTTPS://EVIL.EXAMPLE",
  "https:evil.example",
  "https:/evil.example",
  "https:\\\\evil.example",
  "//evil.example",
  "///evil.example",
  "////evil.example/%2e%2e",
  "\\\\evil.example",
  "/\\evil.example",
  "\\/evil.example",
  "/\\/evil.example",
  "/\t/evil.example",
  "/\n/evil.example",
  "/\r\n/evil.example",
  "\t//evil.example",
  " //evil.example",
  "/ /evil.example",
  "\u0000//evil.example",
  "\u0001//evil.example",
  "/.//evil.example",
  "/./\\evil.example",
  "/..//evil.example",
  "/a/..//evil.example",
  "/a/../..//evil.example",
  "/%2e//evil.example",
  "/%2E%2e//evil.example",
  "/a/%2e%2e//evil.example",
  "javascript:alert(1)",
  "JaVaScRiPt:alert(1)//",
  "java\nscript:alert(1)",
  "data:text/html,<script>alert(1)</script>",
  "vbscript:x",
  "blob:https://evil.example/x",
  "@evil.example",
  ".evil.example",
  ":80",
  "evil.example",
  "?//evil.example",
  "#//evil.example",
  "..//evil.example",
  "",
  "/a\r\nLocation: https://evil.example",
  "/a\r\nSet-Cookie: kenri=x",
  "/a\nX: y",
  "/a\u0000",
  "/a\u007f",
  "/a\u0085b",
  "/" + "a".repeat(1_024),
];

const local: Record<string, string> = {
  "/": "/",
  "/orders": "/orders",
  "/orders?page=2&x=https://evil.example": "/orders?page=2&x=https://evil.example",
  "/orders#top": "/orders#top",
  "/a/../orders": "/orders",
  "/a//b": "/a//b",
  "/@evil.example": "/@evil.example",
  "/:80": "/:80",
  "/%0d%0aSet-Cookie:%20kenri=x": "/%0d%0aSet-Cookie:%20kenri=x",
  "/%2f/evil.example": "/%2f/evil.example",
  "/%5cevil.example": "/%5cevil.example",
  "/käse": "/k%C3%A4se",
  "/https://evil.example": "/https://evil.example",
};

Deno.test("G-107: return_to that leads elsewhere is refused before the login", async () => {
  await using stack = await startLoginStack();
  const parameters = elsewhere.map((path) => `return_to=${encodeURIComponent(path)}`);
  const raw = ["return_to=%ff//evil.example", "return_to=/a&return_to=//evil.example"];
  for (const parameter of [...parameters, ...raw, "return_to=/a&return_to=/b", "return_to"]) {
    const page = await new Browser().open(`${stack.url}/login?${parameter}`);
    assert.deepEqual([page.status, page.location], [400, ""], parameter);
    assert.deepEqual(page.headers.getSetCookie(), [], parameter);
    assert.ok(!page.text.includes("evil"), parameter);
  }
});

Deno.test("G-107: a path of this site is where the browser returns to, and it injects no header", async () => {
  await using stack = await startLoginStack();
  for (const [wanted, reached] of Object.entries(local)) {
    const browser = new Browser();
    const page = await browser.logIn(stack.url, "ann", `?return_to=${encodeURIComponent(wanted)}`);
    assert.equal(page.headers.get("Location"), reached, wanted);
    assert.equal(new URL(page.location).origin, stack.url, wanted);
    const cookies = page.headers.getSetCookie();
    assert.equal(cookies.length, 1, wanted);
    assert.match(cookies[0] ?? "", /^kenri=[\w.-]+; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Lax$/);
    assert.equal(page.headers.get("Referrer-Policy"), "no-referrer");
    assert.equal(page.headers.get("Cache-Control"), "no-store");
  }
});

Deno.test("the callback's address is that of the gateway, whatever host a request names", async () => {
  await using stack = await startLoginStack();
  const begun = await new Browser().open(`${stack.url}/login`, {
    headers: { "X-Forwarded-Host": "evil.example", Forwarded: "host=evil.example" },
  });
  const redirect = new URL(begun.location).searchParams.get("redirect_uri");
  assert.equal(redirect, `${stack.url}/login/callback`);
});
