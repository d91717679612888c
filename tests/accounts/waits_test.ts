// Requests that wait for a ticket: they end with their browser, with their session and with the
// gateway, and take nothing from other requests.
import assert from "node:assert/strict";
import { until } from "../../tools/servers/wait.ts";
import { assertError, call } from "../support/api.ts";
import { post } from "../support/account.ts";
import { type Behind, json, startBehind } from "../support/behind.ts";
import { logIn } from "../support/gateway.ts";

const path = "/v1/matchmaking/tickets/casual-1";
const waitPath = `${path}?wait=25s`;
const ticket = { ticket_id: "casual-1", status: "QUEUED", expires_at: "2026-01-02T03:04:05Z" };

async function startWait({ gateway }: Behind, cookie: string, signal: AbortSignal | null = null) {
  const answer = await fetch(gateway.url + waitPath, { headers: { Cookie: cookie }, signal });
  return { status: answer.status, text: await answer.text() };
}

function startWaits(behind: Behind, cookie: string, count: number, signal?: AbortSignal) {
  return Array.from({ length: count }, () => startWait(behind, cookie, signal));
}

Deno.test("a wait ends behind when the browser goes away, and that is no failure of the service", async () => {
  await using behind = await startBehind();
  const { matchmaking, ask, user, gateway } = behind;
  matchmaking.behaveAt(waitPath, "hang");
  matchmaking.behaveAt(path, json(ticket));
  for (let i = 1; i <= 6; i++) {
    const leave = new AbortController();
    const wait = startWait(behind, user.cookie, leave.signal);
    const left = assert.rejects(wait, { name: "AbortError" });
    await until("it waits", () => matchmaking.arrived(waitPath).length === i);
    assert.equal(matchmaking.open, 1);
    leave.abort();
    await left;
    await until("nobody waits behind", () => matchmaking.open === 0);
  }
  assert.equal((await ask(path)).status, 200, "the breaker is closed");
  assert.equal(matchmaking.arrived(waitPath).length, 6, "none was tried again");
  const { text } = await call(`${gateway.url}/metrics`);
  assert.match(text, /^kenri_breaker_open\{service="matchmaking"\} 0$/m);
  assert.match(
    text,
    /^kenri_ask_duration_seconds_count\{service="matchmaking",outcome="left"\} 6$/m,
  );
});

Deno.test("a user has eight waits, and beside them all other requests", async () => {
  await using behind = await startBehind();
  const { matchmaking, ask, user, real } = behind;
  matchmaking.behaveAt(waitPath, "hang");
  matchmaking.behaveAt(path, json(ticket));
  const leave = new AbortController();
  const waits = Promise.allSettled(startWaits(behind, user.cookie, 8, leave.signal));
  await until("all wait", () => matchmaking.arrived(waitPath).length === 8);
  const refused = await ask(waitPath);
  assertError(refused, 429, "TOO_MANY_REQUESTS");
  assert.equal(refused.headers.get("Retry-After"), "1");
  assert.equal((await ask(path)).status, 200);
  const other = await logIn(real);
  const ofOther = Promise.allSettled(startWaits(behind, other.cookie, 1, leave.signal));
  await until("another user waits", () => matchmaking.arrived(waitPath).length === 9);
  leave.abort();
  await Promise.all([waits, ofOther]);
  await until("all have left", () => matchmaking.open <= 1);
  matchmaking.behaveAt(waitPath, json(ticket));
  assert.equal((await ask(waitPath)).status, 200, "they have given their places back");
});

Deno.test("waits take no slot of other requests", async () => {
  await using behind = await startBehind({ HTTP_REQUESTS_AT_ONCE: "3" });
  const { matchmaking, ask, user } = behind;
  matchmaking.behaveAt(waitPath, "hang");
  matchmaking.behaveAt(path, json(ticket));
  const leave = new AbortController();
  const waits = Promise.allSettled(startWaits(behind, user.cookie, 3, leave.signal));
  await until("all wait", () => matchmaking.arrived(waitPath).length === 3);
  assertError(await ask(waitPath), 503, "SERVICE_UNAVAILABLE");
  const answers = await Promise.all([ask(path), ask(path), ask(path)]);
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200]);
  leave.abort();
  await waits;
});

Deno.test("a user who is suspended during a wait does not get its answer", async () => {
  await using behind = await startBehind();
  const { matchmaking, user, real } = behind;
  const answer = Promise.withResolvers<void>();
  matchmaking.behaveAt(waitPath, () => answer.promise.then(() => json(ticket)));
  const wait = startWait(behind, user.cookie);
  await until("it waits", () => matchmaking.arrived(waitPath).length === 1);
  await post(`${real.url}/v1/users/${user.userId}:suspend`, { reason: "abuse" });
  await until("the gateway knows it", async () => (await behind.ask(path)).status === 403);
  answer.resolve();
  const { status, text } = await wait;
  assert.equal(status, 403);
  assert.match(text, /ACCOUNT_INACTIVE/);
});

Deno.test("a gateway that stops ends its waits, and does not wait for them", async () => {
  await using behind = await startBehind();
  const { matchmaking, user, gateway } = behind;
  matchmaking.behaveAt(waitPath, "hang");
  const waits = startWaits(behind, user.cookie, 3);
  await until("all wait", () => matchmaking.arrived(waitPath).length === 3);
  const from = performance.now();
  gateway.signal("SIGTERM");
  for (const { status, text } of await Promise.all(waits)) {
    assert.equal(status, 503);
    assert.match(text, /SERVICE_UNAVAILABLE/);
  }
  assert.equal(await gateway.exited, 0);
  assert.ok(performance.now() - from < 4_000);
  assert.deepEqual(gateway.log.filter(({ message }) => /unfinished/.test(message)), []);
});
