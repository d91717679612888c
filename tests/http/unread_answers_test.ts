// Clients that send many requests and read no answers, over HTTP/2 and HTTP/1.1, and requests
// without a credential that stay open: what they cost is bounded, and callers are served meanwhile.
import assert from "node:assert/strict";
import { bearer, newClient, tokensOf } from "../support/access.ts";
import { call, grant } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { connectHttp2, connectManyHttp2 } from "./http2.ts";
import { startIssuer } from "../access/issuer.ts";
import { memoryOf } from "../../tools/servers/memory.ts";
import { connectMany } from "./raw_http.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

const shop = newClient("shop", "entitlements:write", "entitlements:read", "metrics:read");
const settings = { ...tokensOf(shop), ENTITLEMENT_DEBUG_ENABLED: "true" };
const asShop = bearer(shop.token);

let kenri: Entitlement;
Deno.test.beforeAll(async () => {
  kenri = await startEntitlement(settings);
  await call(`${kenri.url}/docs`); // the page is made once, and then kept
  await assertCallersAreServed();
});
Deno.test.afterAll(() => kenri.close());

async function assertCallersAreServed(): Promise<void> {
  const asked = call(`${kenri.url}/v1/users/ann/entitlements`, { headers: asShop });
  assert.equal((await inTime("a caller is served", asked)).status, 200);
  assert.equal(
    (await inTime("a health check is answered", call(`${kenri.url}/readyz`))).status,
    200,
  );
}

const memory = () => memoryOf(kenri.service.pid).mebibytes;

// Returns how much memory the service uses for 20 open connections with 200 requests each.
async function grownBy(headersOf: (i: number) => Record<string, string>): Promise<number> {
  const before = memory();
  using clients = connectManyHttp2(kenri.url, 20);
  const asked = clients.map((client) =>
    Promise.all(Array.from({ length: 200 }, (_, i) => client.ask(headersOf(i))))
  );
  await inTime("all are answered", Promise.all(asked));
  await assertCallersAreServed();
  return memory() - before;
}

const host = "kenri.example";

Deno.test("unread answers over HTTP/2 take little memory, and callers are served", async () => {
  const attacks: Record<string, (i: number) => Record<string, string>> = {
    "with the pseudo-headers of HTTP/2": () => ({ ":path": "/docs" }),
    "with the Host of HTTP/1.1": () => ({ ":path": "/docs", host }),
    "of several pages": (i) => ({ ":path": i % 2 ? "/openapi.json" : "/docs", host }),
    "of a caller": () => ({ ":path": "/metrics", host, ...asShop }),
    "with long heads": () => ({ ":path": "/docs", host, padding: "x".repeat(12_000) }),
  };
  for (const [name, headersOf] of Object.entries(attacks)) {
    const grown = await grownBy(headersOf);
    assert.ok(grown < 60, `${name}: ${grown} MiB`);
  }
});

Deno.test("a client gets no second answer over HTTP/2 before it has read the first", async () => {
  using client = connectHttp2(kenri.url);
  const ask = () => inTime("an answer", client.ask({ ":path": "/docs", host }));
  assert.equal(await ask(), 200);
  assert.equal(await ask(), 503); // after a wait
  for (let i = 0; i < 20; i++) assert.equal(await ask(), 503);
});

Deno.test("a caller that reads no answers over HTTP/2 gets 32 at most", async () => {
  using client = connectHttp2(kenri.url);
  const headers = { ":path": "/v1/users/ann/entitlements", host, ...asShop };
  const statuses = [];
  for (let i = 0; i < 66; i++) statuses.push(await inTime("an answer", client.ask(headers)));
  assert.ok(statuses.filter((status) => status === 200).length <= 32, `${statuses}`);
  assert.equal(statuses.at(-1), 503);
});

Deno.test("a request without a Host is refused, but a health check is answered", async () => {
  using client = connectHttp2(kenri.url);
  assert.equal(await inTime("an answer", client.ask({ ":path": "/docs" })), 400);
  using prober = connectHttp2(kenri.url);
  assert.equal(await inTime("an answer", prober.ask({ ":path": "/livez" })), 200);
});

Deno.test("unread answers over HTTP/1.1 take little memory, and callers are served", async () => {
  const before = memory();
  using crowd = await connectMany(kenri.url, 200);
  assert.equal(crowd.length, 200);
  const request = `GET /docs HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  for (const client of crowd) await client.send(request.repeat(200));
  await assertCallersAreServed();
  const grown = memory() - before;
  // All answers together are 5 GB.
  assert.ok(grown < 300, `${grown} MiB`);
});

const signIn = {
  ":path": "/console/sign-in",
  ":method": "POST",
  host,
  "content-type": "application/x-www-form-urlencoded",
  "content-length": "100",
  "sec-fetch-site": "same-origin",
};

Deno.test("unfinished sign-ins over HTTP/2 take no slot from a caller", async () => {
  using clients = connectManyHttp2(kenri.url, 30);
  const probe = { ":path": "/livez", ":method": "HEAD", host };
  await Promise.all(clients.map((client) => client.ask(probe)));
  for (const client of clients) for (let i = 0; i < 200; i++) void client.ask(signIn, "begun");
  for (let i = 0; i < 30; i++) await assertCallersAreServed();
});

Deno.test("requests without a credential have slots of their own, and get 503 when these are taken", async () => {
  await using issuer = await startIssuer();
  await using small = await startEntitlement({
    ...settings,
    ...issuer.settings,
    HTTP_REQUESTS_AT_ONCE: "250",
  });
  const { url } = small;
  using crowd = await connectMany(url, 60);
  for (const client of crowd) {
    await client.send(
      `POST /console/sign-in HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 100\r\n` +
        "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\nt",
    );
  }
  const statuses: unknown[] = [];
  const answers = crowd.map((client) =>
    client.answer().then((answer) => statuses.push(answer?.status))
  );
  await until("all but five are refused", () => statuses.length === 55);
  assert.deepEqual([...new Set(statuses)], [503]);
  assert.equal((await call(`${url}/docs`)).status, 503);
  assert.equal((await call(`${url}/livez`)).status, 200);
  const changed = await grant(url, {}, "k", asShop);
  assert.equal(changed.status, 200, changed.text);
  // A request whose credential has to be checked first does not count as one without a credential.
  const jwt = await issuer.sign({ sub: "ann", scope: "entitlements:read", inSeconds: 60 });
  const listed = await call(`${url}/v1/users/ann/entitlements`, { headers: bearer(jwt) });
  assert.equal(listed.status, 200, listed.text);
  // The open requests end after ten seconds.
  await Promise.all(answers);
  assert.deepEqual(statuses.slice(55), Array(5).fill(408));
  assert.equal((await call(`${url}/docs`)).status, 200);
});
