// A request over a limit is refused early, with an error in the usual form, and counted.
import assert from "node:assert/strict";
import { assertError, call, grant, list } from "../support/api.ts";
import { startEntitlement } from "../support/entitlement.ts";
import { waitingForLocks, whileTableIsLocked } from "../support/locks.ts";
import { scrapeOf, valueOf } from "../support/metrics.ts";
import { sendRaw } from "./raw_http.ts";
import { until } from "../../tools/servers/wait.ts";

const refused = async (url: string, limit: string) =>
  valueOf(await scrapeOf({ url }), "kenri_refused_total", { limit });

Deno.test("a url of 16 KiB is accepted, and a longer one is refused", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  const pathFor = (length: number) => "/v1/".padEnd(length - url.length, "x");
  assertError(await call(url + pathFor(16_384)), 404, "NOT_FOUND");
  assertError(await call(url + pathFor(16_385)), 414, "URI_TOO_LONG", "the url is over 16 KiB");
  assert.equal(await refused(url, "url_size"), 1);
});

Deno.test("a head over 64 KiB is refused by the runtime, which then closes the connection", async () => {
  await using kenri = await startEntitlement();
  const headOf = (bytes: number) =>
    `GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(bytes)}\r\n\r\n`;
  assert.equal((await sendRaw(kenri.url, headOf(60 * 1_024)))?.status, 200);
  const over = await sendRaw(kenri.url, headOf(64 * 1_024));
  assert.deepEqual([over?.status, over?.headers.get("Connection"), over?.text], [400, "close", ""]);
});

Deno.test("more requests at once than allowed are refused, but health is answered", async () => {
  await using kenri = await startEntitlement({ HTTP_REQUESTS_AT_ONCE: "2" });
  const { url, database } = kenri;
  const held = await whileTableIsLocked(database.ownerUrl, "entitlements", async (release) => {
    const lists = [list(url, "ann"), list(url, "bob")];
    await until("both wait", async () => await waitingForLocks(database.ownerUrl) === 2);
    const answer = await grant(url);
    assertError(answer, 503, "SERVICE_UNAVAILABLE", "too many requests are under way, try again");
    assert.equal(answer.headers.get("Retry-After"), "1");
    assert.equal((await call(`${url}/livez`)).status, 200);
    assertError(await call(`${url}/livez/`), 503, "SERVICE_UNAVAILABLE");
    await release();
    return await Promise.all(lists);
  });
  assert.deepEqual(held.map(({ status }) => status), [200, 200]);
  assert.equal((await grant(url)).status, 200);
  assert.equal(await refused(url, "requests_at_once"), 2);
});

Deno.test("a caller that sends too many requests gets 429 with Retry-After, but health is answered", async () => {
  await using kenri = await startEntitlement({ ACCESS_RATE: "2", ACCESS_BURST: "5" });
  const { url } = kenri;
  const answers = await Promise.all(Array.from({ length: 20 }, () => list(url, "ann")));
  const tooMany = answers.filter(({ status }) => status === 429);
  assert.equal(answers.filter(({ status }) => status === 200).length, 20 - tooMany.length);
  assert.ok(tooMany.length >= 13, `${tooMany.length} were refused`);
  for (const answer of tooMany) {
    assertError(
      answer,
      429,
      "TOO_MANY_REQUESTS",
      "this caller sent too many requests, try again later",
    );
    assert.equal(answer.headers.get("Retry-After"), "1");
  }
  for (let i = 0; i < 20; i++) assert.equal((await call(`${url}/livez`)).status, 200);
  await new Promise((over) => setTimeout(over, 1_000));
  assert.ok((await refused(url, "rate") ?? 0) >= tooMany.length);
});

Deno.test("a caller that waits for Retry-After is served", async () => {
  await using kenri = await startEntitlement({ ACCESS_RATE: "0.5" });
  assert.equal((await grant(kenri.url, {}, "k")).status, 200);
  const refusal = await grant(kenri.url, {}, "k");
  assertError(refusal, 429, "TOO_MANY_REQUESTS");
  const seconds = Number(refusal.headers.get("Retry-After"));
  await new Promise((over) => setTimeout(over, seconds * 1_000));
  const again = await grant(kenri.url, {}, "k");
  assert.deepEqual([again.status, again.headers.get("Idempotency-Replayed")], [200, "true"]);
});
