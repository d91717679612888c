// G-104: the keys of sessions are rotated while people use them.
import assert from "node:assert/strict";
import type { ServiceProcess } from "../../tools/servers/service_process.ts";
import { startAccount } from "../support/account.ts";
import { type Answer, call } from "../support/api.ts";
import { logIn, me, startGateway, untilConnected } from "../support/gateway.ts";

const [oldKey, newKey] = ["A".repeat(43), "B".repeat(43)];
const people = 8;
const pauseMs = 5; // without it, this machine would have no time to start replicas

Deno.test("G-104: keys rotate under load without a 401 and without a refused token, and the old key opens nothing afterwards", async () => {
  await using account = await startAccount();
  // Sessions in use get a new cookie after a second.
  const more = { GATEWAY_SESSION_IDLE: "12s", GATEWAY_RATE_USER: "1000" };
  const start = async (keys: string) => {
    const replica = await startGateway(account, { ...more, GATEWAY_SESSION_KEYS: keys });
    await untilConnected(replica);
    return replica;
  };
  const replicas = [await start(oldKey), await start(oldKey)];
  const visitors = await Promise.all(
    Array.from({ length: people }, async () => (await logIn(account, { key: oldKey })).cookie),
  );
  const first = new Set(visitors);
  const stop = new AbortController();
  const using = visitors.map((cookie) => use(replicas, cookie, stop.signal));
  for (const keys of [`${oldKey},${newKey}`, `${newKey},${oldKey}`]) {
    for (const i of replicas.keys()) {
      const before = replicas[i];
      replicas[i] = await start(keys);
      assert.equal(await before?.stop(), 0);
    }
    await new Promise((over) => setTimeout(over, 1_500)); // all cookies are renewed by the new key
  }
  for (const i of replicas.keys()) {
    const before = replicas[i];
    replicas[i] = await start(newKey);
    assert.equal(await before?.stop(), 0);
  }
  stop.abort();
  const used = await Promise.all(using);
  const refused = used.flatMap(({ refused }) => refused);
  assert.deepEqual(refused, []);
  const requests = used.reduce((sum, { requests }) => sum + requests, 0);
  assert.ok(requests > 1_000, `${requests} requests`);
  const withOldKey = await logIn(account, { key: oldKey });
  for (const replica of replicas) {
    assert.equal((await me(replica, withOldKey)).status, 401, "its key is gone");
    for (const { cookie } of used) {
      assert.ok(!first.has(cookie));
      assert.equal((await me(replica, { cookie })).status, 200);
    }
    await replica.stop();
  }
});

interface Use {
  requests: number;
  refused: string[];
  cookie: string; // the newest
}

/** A person in a browser, behind a load balancer: any replica answers that is not stopping. */
async function use(
  replicas: ServiceProcess[],
  cookie: string,
  stop: AbortSignal,
): Promise<Use> {
  const all: Use = { requests: 0, refused: [], cookie };
  let token = "";
  const ask = async (method: string, path: string): Promise<Answer> => {
    const { url } = replicas[Math.floor(Math.random() * replicas.length)] as ServiceProcess;
    const proof = { "X-CSRF-Token": token, "Sec-Fetch-Site": "same-origin" };
    const headers = { Cookie: all.cookie, ...proof };
    const answer = await call(url + path, { method, headers });
    const [renewed] = answer.headers.get("Set-Cookie")?.split(";") ?? [];
    if (renewed) all.cookie = renewed;
    all.requests++;
    if (answer.status === 503 && /is stopping/.test(answer.text)) return await ask(method, path);
    return answer;
  };
  while (!stop.aborted) {
    const { status, text, json } = await ask("GET", "/v1/me");
    if (status !== 200) all.refused.push(`${status} ${text}`);
    token = json?.csrf_token ?? "";
    const unsafe = await ask("POST", "/v1/nothing");
    if (unsafe.status !== 404) all.refused.push(`${unsafe.status} ${unsafe.text}`);
    await new Promise((over) => setTimeout(over, pauseMs));
  }
  return all;
}
