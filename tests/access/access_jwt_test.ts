// JWTs: a token that the issuer signed is accepted, and no token that only looks like one.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { scopes } from "../../proto/scopes.ts";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { type Answer, assertError, call, grant } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { audience, type Claims, type Issuer, startIssuer } from "./issuer.ts";
import { look, operate } from "../support/stack.ts";
import { until } from "../../tools/servers/wait.ts";

let issuer: Issuer;
let kenri: Entitlement;
Deno.test.beforeAll(async () => {
  issuer = await startIssuer();
  kenri = await startEntitlement(issuer.settings);
});
Deno.test.afterAll(async () => {
  await kenri.close();
  await issuer[Symbol.asyncDispose]();
});

const good: Claims = { sub: "ann", scope: "metrics:read", inSeconds: 600 };

async function metricsWith(token: string, { url } = kenri): Promise<Answer> {
  return await call(`${url}/metrics`, { headers: bearer(token) });
}

function assertRefused(answer: Answer, message: RegExp): void {
  assertError(answer, 401, "UNAUTHORIZED");
  assert.match(answer.json.message, message);
  assert.equal(
    answer.headers.get("WWW-Authenticate"),
    'Bearer realm="kenri", error="invalid_token"',
  );
}

Deno.test("scopes are words or a list in scope or scp, and unknown scopes are ignored", async () => {
  const granted: Claims[] = [
    { scope: "openid metrics:read" },
    { scope: ["metrics:read"] },
    { scp: "metrics:read other" },
    { scp: ["email", "metrics:read"] },
    { scope: "openid", scp: ["metrics:read"] },
  ];
  for (const scope of granted) {
    const { scope: _, ...rest } = good;
    const answer = await metricsWith(await issuer.sign({ ...rest, ...scope }));
    assert.equal(answer.status, 200, answer.text);
  }
  for (const scope of ["", "metrics", "metrics:read:all", "METRICS:READ", "metrics:reader"]) {
    assertError(await metricsWith(await issuer.sign({ ...good, scope })), 403, "FORBIDDEN");
  }
  for (const scope of [undefined, 7, { "metrics:read": true }, ["metrics:read openid"]]) {
    assertError(await metricsWith(await issuer.sign({ ...good, scope })), 403, "FORBIDDEN");
  }
});

Deno.test("a token of another issuer or for another audience is refused", async () => {
  const { iss, aud } = { iss: /its iss is/, aud: /its aud is/ };
  const tokens: [Claims, RegExp][] = [
    [{ iss: "https://other.example" }, iss],
    [{ iss: "" }, iss],
    [{ aud: "other" }, aud],
    [{ aud: ["other", "else"] }, aud],
    [{ aud: "" }, aud],
  ];
  for (const [claims, problem] of tokens) {
    assertRefused(await metricsWith(await issuer.sign({ ...good, ...claims })), problem);
  }
  const several = await issuer.sign({ ...good, aud: ["other", audience] });
  assert.equal((await metricsWith(several)).status, 200);
});

Deno.test("a token is valid from nbf to exp, extended by the leeway", async () => {
  const nowSeconds = Math.floor(Date.now() / 1_000);
  assertRefused(await metricsWith(await issuer.sign({ ...good, inSeconds: -40 })), /has expired/);
  const { inSeconds: _, ...endless } = good;
  assertRefused(await metricsWith(await issuer.sign(endless)), /its exp is missing/);
  const early = await issuer.sign({ ...good, nbf: nowSeconds + 60 });
  assertRefused(await metricsWith(early), /its nbf is/);
  for (const claims of [{ inSeconds: -10 }, { nbf: nowSeconds + 15 }]) {
    const answer = await metricsWith(await issuer.sign({ ...good, ...claims }));
    assert.equal(answer.status, 200, answer.text);
  }
});

Deno.test("a token that was accepted is refused after it has expired", async () => {
  await using strict = await startEntitlement({ ...issuer.settings, ACCESS_JWT_LEEWAY: "1ms" });
  const token = await issuer.sign({ ...good, inSeconds: 2 });
  assert.equal((await metricsWith(token, strict)).status, 200);
  await until("it has expired", async () => (await metricsWith(token, strict)).status === 401);
  assertRefused(await metricsWith(token, strict), /has expired/);
});

const encode = (part: unknown) => Buffer.from(JSON.stringify(part)).toString("base64url");

Deno.test("a token signed without a key, with the public key as a secret, or with a foreign key is refused", async () => {
  const [header = "", payload = "", signature = ""] = (await issuer.sign(good)).split(".");
  const { kid } = JSON.parse(Buffer.from(header, "base64url").toString());
  const none = { alg: "none", kid };
  const hs256 = encode({ alg: "HS256", kid, typ: "JWT" });
  const mac = createHmac("sha256", issuer.publicPem).update(`${hs256}.${payload}`);
  await using other = await startIssuer();
  const strange = { ...good, iss: issuer.settings["ACCESS_JWT_ISSUER"] ?? "" };
  const forged: [string, RegExp][] = [
    [`${encode(none)}.${payload}.`, /not allowed|can't be read/],
    [`${encode({ ...none, alg: "None" })}.${payload}.`, /not allowed|can't be read/],
    [`${encode(none)}.${payload}.${signature}`, /not allowed|can't be read/],
    [`${hs256}.${payload}.${mac.digest("base64url")}`, /not allowed/],
    [await other.sign({ ...strange, kid }), /wrong signature/],
    [await other.sign(strange), /does not publish/],
    [`${header}.${encode({ ...good, sub: "eve", exp: 9e9 })}.${signature}`, /wrong signature/],
    [`${header}.${payload}.${"A".repeat(signature.length)}`, /wrong signature/],
    [`${header}.${payload}.`, /can't be read|wrong signature/],
    ["a.b.c", /can't be read/],
    ["..", /can't be read/],
  ];
  for (const [token, problem] of forged) assertRefused(await metricsWith(token), problem);
  assert.equal((await metricsWith(`${header}.${payload}.${signature}`)).status, 200);
});

Deno.test("an algorithm that is not configured is refused, even if the issuer signs with it", async () => {
  const only = { ...issuer.settings, ACCESS_JWT_ALGORITHMS: "RS256" };
  await using picky = await startEntitlement(only);
  assertRefused(await metricsWith(await issuer.sign(good), picky), /not allowed/);
});

Deno.test("every algorithm of the default list is supported", async () => {
  for (const algorithm of ["RS256", "PS256", "EdDSA"]) {
    await using other = await startIssuer(algorithm);
    await using service = await startEntitlement(other.settings);
    const answer = await metricsWith(await other.sign(good), service);
    assert.equal(answer.status, 200, `${algorithm}: ${answer.text}`);
  }
});

Deno.test("keys are fetched once, and again when a token names a new one", async () => {
  await using rotating = await startIssuer();
  await using service = await startEntitlement(rotating.settings);
  const first = await rotating.sign(good);
  const tokens = await Promise.all(
    Array.from({ length: 20 }, (_, i) => rotating.sign({ ...good, sub: `user-${i}` })),
  );
  const answers = await Promise.all([first, ...tokens].map((token) => metricsWith(token, service)));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.equal(rotating.fetches, 1);
  await rotating.rotate();
  const after = await Promise.all([1, 2, 3, 4].map((i) => rotating.sign({ ...good, sub: `${i}` })));
  const again = await Promise.all(after.map((token) => metricsWith(token, service)));
  assert.deepEqual(again.map(({ status }) => status), [200, 200, 200, 200]);
  assert.equal(rotating.fetches, 2);
  // Invented names of keys cause no more fetches.
  for (let i = 0; i < 20; i++) {
    const token = await rotating.sign({ ...good, kid: `invented-${i}` });
    assertRefused(await metricsWith(token, service), /does not publish/);
  }
  assert.equal(rotating.fetches, 2);
});

Deno.test("while the issuer is down its keys stay in use, and 503 is answered if none was ever fetched", async () => {
  await using failing = await startIssuer();
  failing.down = true;
  await using service = await startEntitlement(failing.settings);
  const token = await failing.sign(good);
  const answer = await metricsWith(token, service);
  assertError(answer, 503, "SERVICE_UNAVAILABLE");
  assert.equal(answer.headers.get("Retry-After"), "2");
  failing.down = false;
  await until(
    "the keys are fetched again",
    async () => (await metricsWith(token, service)).status === 200,
  );
  failing.down = true;
  const [bob, cem] = await Promise.all(["bob", "cem"].map((sub) => failing.sign({ ...good, sub })));
  assert.equal((await metricsWith(bob ?? "", service)).status, 200);
  await failing.rotate();
  const unknown = await failing.sign(good);
  assertError(await metricsWith(unknown, service), 503, "SERVICE_UNAVAILABLE");
  // By now a fetch has failed.
  assert.equal((await metricsWith(cem ?? "", service)).status, 200);
  const logged = service.service.log.filter(({ message }) => /keys/.test(message));
  assert.deepEqual(logged.map(({ level }) => level), ["warning", "info", "warning"]);
});

Deno.test("an operation is recorded under the name in the credential, whatever the request contains", async () => {
  const shop = newClient("shop", ...scopes);
  const settings = { ...issuer.settings, ...tokensOf(shop), ENTITLEMENT_DEBUG_ENABLED: "true" };
  await using own = await startEntitlement(settings);
  const person = await issuer.sign({ ...good, sub: "shop", scope: scopes.join(" ") });
  for (const token of [shop.token, person]) {
    await grant(own.url, { user_id: crypto.randomUUID() }, undefined, bearer(token));
    await until("it is published", async () => {
      const waiting = await own.rows("select from outbox_events where status <> 'PUBLISHED'");
      return waiting.length === 0;
    });
    const range = { from: "2026-01-01T00:00:00Z", to: new Date().toISOString() };
    await operate(own.url, "/operations/entitlement/replay", range, bearer(token));
  }
  const { operations } = await look(own.url, "/debug/entitlement/operations", bearer(person));
  assert.deepEqual(operations.map(({ who }: { who: string }) => who), ["jwt:shop", "shop"]);
});

Deno.test("a subject that is not a valid name is refused", async () => {
  const { sub: _, ...nameless } = good;
  const unfit: Claims[] = [
    nameless,
    ...["", "a b", "a\nb", "é", "x".repeat(251)].map((sub) => ({ ...good, sub })),
  ];
  for (const claims of unfit) {
    assertRefused(await metricsWith(await issuer.sign(claims)), /must have a sub/);
  }
  for (const claim of ["client_id", "azp"]) {
    const token = await issuer.sign({ ...nameless, [claim]: "x".repeat(250) });
    assertRefused(await metricsWith(token), new RegExp(`must have a ${claim} of 1 to 24`));
  }
  for (const claims of [{ client_id: "shop" }, { azp: "shop" }, { sub: "x".repeat(250) }]) {
    const answer = await metricsWith(await issuer.sign({ ...nameless, ...claims }));
    assert.equal(answer.status, 200, answer.text);
  }
});

Deno.test("a token that the issuer signed for another purpose is refused", async () => {
  for (const typ of ["at+jwt", "AT+JWT", "application/at+jwt", "JWT", "jwt"]) {
    assert.equal((await metricsWith(await issuer.sign({ ...good, typ }))).status, 200, typ);
  }
  for (const typ of ["id+jwt", "logout+jwt", "dpop+jwt", "secevent+jwt", "at", "", "JWT, at+jwt"]) {
    assertRefused(await metricsWith(await issuer.sign({ ...good, typ })), /not an access token/);
  }
  for (const claim of ["nonce", "at_hash", "c_hash", "s_hash", "events"]) {
    for (const typ of ["JWT", "at+jwt"]) {
      const token = await issuer.sign({ ...good, typ, [claim]: "x" });
      assertRefused(await metricsWith(token), /not an access token/);
    }
  }
});
