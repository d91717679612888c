// Cookies that the gateway did not make as a session: nobody is let in by them, and the answer does not
// say what was wrong.
import assert from "node:assert/strict";
import { CompactEncrypt, EncryptJWT, SignJWT, UnsecuredJWT } from "jose";
import { Seals } from "../../gateway/session/seal.ts";
import { SessionCookies } from "../../gateway/session/session.ts";
import { Sessions } from "../../shared/access/sessions.ts";
import type { ServiceProcess } from "../../tools/servers/service_process.ts";
import { type Account, startAccount } from "../support/account.ts";
import { assertError, call } from "../support/api.ts";
import { logIn, me, sessionKey, startGateway, untilConnected } from "../support/gateway.ts";

let account: Account;
let gateway: ServiceProcess;
Deno.test.beforeAll(async () => {
  account = await startAccount();
  gateway = await startGateway(account, {
    ACCESS_SESSION_KEY: sessionKey,
    GATEWAY_RATE_USER: "1000000",
    GATEWAY_RATE_USER_BURST: "1000000",
  });
  await untilConnected(gateway);
});
Deno.test.afterAll(async () => {
  await gateway.kill();
  await account[Symbol.asyncDispose]();
});

const keyOf = (text: string) => Uint8Array.fromBase64(text, { alphabet: "base64url" });
const key = keyOf(sessionKey);
const hourMs = 3_600_000;
const sealedOf = ({ cookie }: { cookie: string }) => cookie.slice("kenri=".length);

async function assertNobody(cookie: string, what: string): Promise<void> {
  const answer = await me(gateway, { cookie });
  assert.equal(answer.status, 401, `${what}: ${answer.text}`);
  assertError(answer, 401, "UNAUTHORIZED", "there is no session, log in first");
  assert.equal(answer.headers.get("WWW-Authenticate"), null);
  assert.equal(answer.headers.get("Set-Cookie"), null);
}

Deno.test("G-104: a session that differs in one bit is no session, wherever the bit is", async () => {
  const ann = await logIn(account);
  const sealed = sealedOf(ann);
  assert.equal((await me(gateway, ann)).status, 200);
  for (let at = 0; at < sealed.length; at++) {
    const changed = String.fromCharCode(sealed.charCodeAt(at) ^ 1);
    if (/[;,\s"\\=\x7f]/.test(changed)) continue; // it would end the cookie
    await assertNobody(`kenri=${sealed.slice(0, at)}${changed}${sealed.slice(at + 1)}`, `${at}`);
  }
  for (const cut of [1, 2, 16, sealed.length - 1]) {
    await assertNobody(`kenri=${sealed.slice(0, -cut)}`, `${cut} characters are missing`);
    await assertNobody(`kenri=${sealed.slice(cut)}`, `the first ${cut} are missing`);
  }
  for (const more of [".", "A", "=", ".A", "%00"]) await assertNobody(`${ann.cookie}${more}`, more);
  assert.equal((await me(gateway, ann)).status, 200);
});

Deno.test("the parts of two sessions make no third one", async () => {
  const [ann, bob] = [await logIn(account), await logIn(account)];
  const [ofAnn, ofBob] = [sealedOf(ann).split("."), sealedOf(bob).split(".")];
  for (let taken = 1; taken < 2 ** 5 - 1; taken++) {
    const mixed = ofAnn.map((part, at) => taken & (1 << at) ? ofBob[at] : part).join(".");
    if ([sealedOf(ann), sealedOf(bob)].includes(mixed)) continue; // the headers are equal
    await assertNobody(`kenri=${mixed}`, `parts ${taken.toString(2)}`);
  }
});

const content = (userId: string, sessionId: string = crypto.randomUUID()) => ({
  session_id: sessionId,
  user_id: userId,
  provider: "https://issuer.example",
  session_epoch: 1,
  issued_at: Date.now(),
  expires_at: Date.now() + hourMs,
});

Deno.test("what the gateway or another service sealed for another purpose is no session", async () => {
  const { userId } = await logIn(account);
  const seals = new Seals([key]);
  const console = new Sessions("gateway", sessionKey);
  const caller = { name: "ops", scopes: new Set<never>() };
  const forged = {
    "a login": await seals.seal("login", content(userId), Date.now() + hourMs),
    "a state": await seals.seal("state", content(userId), Date.now() + hourMs),
    "a console": await console.seal({ digest: "d", ...content(userId) }, "kenri-gateway", caller),
    "a console of the same name": await console.seal({ digest: "d" }, "session", caller),
    "an empty content": await seals.seal("session", {}, Date.now() + hourMs),
  };
  for (const [what, sealed] of Object.entries(forged)) await assertNobody(`kenri=${sealed}`, what);
});

Deno.test("a session that was sealed with another key or in another way is no session", async () => {
  const { userId } = await logIn(account);
  const claims = {
    ...content(userId),
    aud: "session",
    exp: Math.floor(Date.now() / 1_000) + 3_600,
  };
  const otherKey = new Uint8Array(32).fill(7);
  const jwt = () => new EncryptJWT(claims);
  const forged = {
    "another key": await new Seals([otherKey]).seal("session", claims, Date.now() + hourMs),
    "a key derived from ours": await jwt().setProtectedHeader({ alg: "A256KW", enc: "A256GCM" })
      .encrypt(key),
    "a password": await jwt().setProtectedHeader({ alg: "PBES2-HS256+A128KW", enc: "A256GCM" })
      .encrypt(key),
    "a shorter key": await jwt().setProtectedHeader({ alg: "dir", enc: "A128GCM" })
      .encrypt(key.slice(0, 16)),
    "no purpose": await new CompactEncrypt(
      new TextEncoder().encode(JSON.stringify({ ...claims, aud: undefined })),
    ).setProtectedHeader({ alg: "dir", enc: "A256GCM" }).encrypt(key),
    "no end": await new CompactEncrypt(
      new TextEncoder().encode(JSON.stringify({ ...claims, exp: undefined })),
    ).setProtectedHeader({ alg: "dir", enc: "A256GCM" }).encrypt(key),
    "signed": await new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(key),
    "unsigned": new UnsecuredJWT(claims).encode(),
    "plain": btoa(JSON.stringify(claims)),
  };
  for (const [what, sealed] of Object.entries(forged)) await assertNobody(`kenri=${sealed}`, what);
});

Deno.test("a session with a field that is missing or wrong is no session, although its seal is ours", async () => {
  const { userId } = await logIn(account);
  const seals = new Seals([key]);
  const good = content(userId);
  const wrong: Record<string, unknown>[] = [
    ...Object.keys(good).map((name) => ({ [name]: undefined })),
    ...Object.keys(good).map((name) => ({ [name]: null })),
    ...[{ session_id: "s" }, { user_id: "u" }, { user_id: "../ann" }, { session_epoch: "1" }],
    ...[{ issued_at: 1 }, { expires_at: Date.now() - 1 }, { issued_at: Date.now() - 13 * hourMs }],
    ...[{ issuer_session: "i" }, { user_id: crypto.randomUUID() }, { session_epoch: 0 }],
  ];
  for (const fields of wrong) {
    const bad = { ...content(userId), ...fields };
    const sealed = await seals.seal("session", bad, Date.now() + hourMs);
    await assertNobody(`kenri=${sealed}`, JSON.stringify(fields));
  }
  const sealed = await seals.seal("session", good, Date.now() + hourMs);
  assert.equal((await me(gateway, { cookie: `kenri=${sealed}` })).status, 200);
});

Deno.test("a session has ended for everybody when it has expired or idled", async () => {
  const ann = await logIn(account, { ttlMs: 1 });
  await assertNobody(ann.cookie, "expired");
  const sessions = new SessionCookies(new Seals([key]), { idleMs: 100 * hourMs });
  const now = Date.now();
  const idle = await sessions.seal({
    ...{ sessionId: crypto.randomUUID(), userId: ann.userId, provider: "p", epoch: 1 },
    ...{ issuedAtMs: now - 12 * hourMs - 1, expiresAtMs: now + hourMs },
  });
  await assertNobody(`kenri=${idle}`, "idle for twelve hours, whatever its seal says");
});

Deno.test("a session counts only in its own cookie", async () => {
  const ann = await logIn(account);
  const sealed = sealedOf(ann);
  for (
    const name of [
      "__Host-kenri",
      "Kenri",
      "kenri-login",
      "kenri-gateway",
      "kenri-entitlement",
      "x",
    ]
  ) {
    await assertNobody(`${name}=${sealed}`, name);
  }
  const elsewhere = {
    Authorization: `Bearer ${sealed}`,
    "X-Session": sealed,
    "X-CSRF-Token": sealed,
  };
  assertError(await call(`${gateway.url}/v1/me`, { headers: elsewhere }), 401, "UNAUTHORIZED");
  const inQuery = await call(`${gateway.url}/v1/me?kenri=${sealed}&session=${sealed}`, {});
  assertError(inQuery, 401, "UNAUTHORIZED");
  assert.equal((await me(gateway, { cookie: `a=b; ${ann.cookie}; kenri-login=x` })).status, 200);
});

Deno.test("cookies of any form are answered, and let nobody in", async () => {
  const { cookie } = await logIn(account);
  const odd = [
    "",
    "kenri",
    "kenri=",
    "=",
    ";;;",
    "kenri=%",
    "kenri=%ff",
    'kenri=""',
    "kenri=....",
    "kenri=a.b.c.d.e",
  ];
  const long = [`kenri=${"a".repeat(8_000)}`, `kenri=${"a.".repeat(4_000)}`, "a=b; ".repeat(1_000)];
  for (const one of [...odd, ...long, cookie.toUpperCase(), cookie.replaceAll(".", "%2e.")]) {
    await assertNobody(one, one.slice(0, 40));
  }
});
