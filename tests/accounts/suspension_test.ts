// G-103: a user is suspended while two replicas of the gateway get 200 requests a second with the
// session. How long after the commit the last of them was let in, whatever of the way to the gateways
// is broken.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { Proxy } from "../../tools/chaos/proxy.ts";
import { withPlanted } from "../../tools/planted.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import { type ServiceProcess, startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { runArguments } from "../../tools/services.ts";
import { deathAt, doom } from "../faults/crash/doomed.ts";
import { statement } from "../faults/crash/fault_point.ts";
import { type Account, post, send, startAccount, untilPublished } from "../support/account.ts";
import { type LoggedIn, logIn, me, startGateway, untilItKnows } from "../support/gateway.ts";
import { natsUrl } from "../support/streams.ts";

const requestsPerSecond = 200;
const rounds = 5;
const withinMs = 100; // of the commit, with NATS up
const withoutNatsMs = 6_000; // gateway.session.staleness, and a request

Deno.test("G-103: with NATS, the last request is let in at most 100 ms after the commit", async () => {
  await using world = await open();
  const delays: number[] = [];
  for (let round = 0; round < rounds; round++) {
    delays.push((await race(world, suspend, 1_500)).answeredMs);
  }
  delays.sort((a, b) => a - b);
  // The slowest round does not count: on a machine that does other work, one may be delayed by that.
  assert.ok((delays.at(-2) ?? Infinity) <= withinMs, `${delays} ms`);
});

const cuts: { what: string; cut(world: World): Proxy[] }[] = [
  { what: "everything", cut: ({ toNats }) => [toNats.account, toNats.gateways] },
  { what: "only the gateways", cut: ({ toNats }) => [toNats.gateways] },
  { what: "only the account service", cut: ({ toNats }) => [toNats.account] },
];

for (const { what, cut } of cuts) {
  Deno.test(`G-103: while ${what} can't reach NATS, at most 6 s after the commit`, async () => {
    await using world = await open();
    const { sentMs } = await race(world, async (all) => {
      for (const link of cut(all)) link.set({ kind: "cut" });
      await suspend(all);
    });
    assert.ok(sentMs <= withoutNatsMs, `${sentMs} ms`);
  });
}

Deno.test("G-103: at most 6 s when the relay dies between the commit and the publish", async () => {
  await using world = await open();
  const { account, person } = world;
  const dies = deathAt(statement("after", "commit", 2));
  await using doomed = await startService("account", { ...account.settings, ...dies }, {
    arguments: (name, read) => doom(runArguments(name, read)),
  });
  // The event is handed over only to a relay that keeps up, which a change before shows.
  await send("PATCH", `${doomed.url}/v1/users/${person.userId}`, { display_name: "Ann" });
  await untilPublished(account.database.ownerUrl);
  const { sentMs } = await race(world, async () => {
    await assert.rejects(suspend({ account: doomed, person }));
    await doomed.exited;
  });
  const [event] = await account.rows<{ status: string }>(
    "select status from outbox_events where event_type = 'UserSuspended'",
  );
  assert.equal(event?.status, "IN_FLIGHT");
  assert.ok(sentMs <= withoutNatsMs, `${sentMs} ms`);
});

Deno.test("G-103: at most 6 s when the only account service dies before the publish, and 403 once it is back", async () => {
  await using world = await open();
  const { account, gateways, person } = world;
  const settings = { ...account.settings, ACCOUNT_HTTP_PORT: new URL(account.url).port };
  await account.service.kill();
  const dies = deathAt(statement("after", "commit", 2));
  await using doomed = await startService("account", { ...settings, ...dies }, {
    arguments: (name, read) => doom(runArguments(name, read)),
  });
  await send("PATCH", `${doomed.url}/v1/users/${person.userId}`, { display_name: "Ann" });
  await untilPublished(account.database.ownerUrl);
  for (const gateway of gateways) await untilItKnows(gateway, person);
  await assert.rejects(suspend({ account: doomed, person }));
  const diedAt = Date.now();
  const { sent } = await sendDuring(world, () => pause(withoutNatsMs + 2_000).then(() => ({})));
  const late = sent.filter(({ sentAt }) => sentAt > diedAt + withoutNatsMs);
  assert.ok(late.length > requestsPerSecond);
  assert.deepEqual(new Set(late.map(({ code }) => code)), new Set(["ACCOUNT_UNAVAILABLE"]));
  for (const gateway of gateways) {
    const { headers } = await me(gateway, person);
    assert.match(headers.get("Retry-After") ?? "", /^[1-9]\d*$/);
  }
  await using _back = await startService("account", settings);
  await pause(2_000); // its breaker is open for a second
  for (const gateway of gateways) assert.equal((await me(gateway, person)).status, 403);
});

// What waits in the connection of a process that stands still says nothing about the present.
Deno.test("G-103: at most 6 s when gateways stand still and only then get an old watermark", async () => {
  await using world = await open();
  const { gateways, toNats, person } = world;
  for (const gateway of gateways) gateway.signal("SIGSTOP");
  await pause(1_500); // until a watermark has come
  toNats.account.set({ kind: "cut" });
  await suspend(world);
  await pause(withoutNatsMs);
  for (const gateway of gateways) gateway.signal("SIGCONT");
  await pause(500); // until they have read it
  for (const gateway of gateways) assert.equal((await me(gateway, person)).status, 403);
});

interface World extends AsyncDisposable {
  account: Account;
  gateways: ServiceProcess[];
  toNats: { account: Proxy; gateways: Proxy };
  person: LoggedIn;
}

async function open(): Promise<World> {
  await using opened = new AsyncDisposableStack();
  const port = Number(new URL(natsUrl).port);
  const link = () => opened.use(new Proxy(freePort(), port));
  const toNats = { account: link(), gateways: link() };
  const urlOf = ({ port }: Proxy) => withPlanted(`nats://127.0.0.1:${port}`, "kenri");
  const account = opened.use(await startAccount({ NATS_URL: urlOf(toNats.account) }));
  const gateways = await Promise.all([1, 2].map(async () =>
    opened.use(
      await startGateway(account, {
        NATS_URL: urlOf(toNats.gateways),
        GATEWAY_RATE_USER: "10000",
        GATEWAY_RATE_USER_BURST: "10000",
      }),
    )
  ));
  const person = await logIn(account);
  for (const gateway of gateways) await untilItKnows(gateway, person);
  const closing = opened.move();
  return {
    ...{ account, gateways, toNats, person },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

async function suspend(
  { account, person }: { account: { url: string }; person: LoggedIn },
): Promise<void> {
  const { status } = await post(`${account.url}/v1/users/${person.userId}:suspend`, {
    reason: "spam",
  });
  assert.equal(status, 204);
}

interface Sent {
  sentAt: number; // in milliseconds since 1970
  at: number; // when its answer arrived
  status: number;
  code: string | undefined;
}

/**
 * Returns how many milliseconds after the commit the last request that was let in was sent and answered,
 * and resumes the user.
 */
async function race(
  world: World,
  suspends: (world: World) => Promise<void>,
  forMs = withoutNatsMs + 1_000,
): Promise<{ answeredMs: number; sentMs: number }> {
  const { account, person } = world;
  const { sent: all, decidedAt } = await sendDuring(world, async () => {
    await pause(500);
    await suspends(world);
    const [change] = await account.rows<{ at: number }>(
      `select extract(epoch from max(occurred_at))::float8 * 1000 as at
       from audit_logs where action = 'SUSPEND'`,
    );
    await pause(forMs);
    return { decidedAt: change?.at ?? NaN };
  });
  // On a busy machine the account service may answer too late, and then a gateway answers 504 or 503.
  const sent = all.filter(({ status }) => status < 500);
  const before = sent.filter(({ at }) => at < decidedAt);
  assert.ok(before.length > 50 && before.every(({ status }) => status === 200));
  const last = sent.slice(-requestsPerSecond / 2);
  assert.deepEqual(new Set(last.map(({ code }) => code)), new Set(["ACCOUNT_INACTIVE"]));
  assert.deepEqual(new Set(sent.map(({ status }) => status)), new Set([200, 403]));
  await post(`${account.url}/v1/users/${person.userId}:resume`, { reason: "a mistake" });
  await untilAllLetIn(world);
  const admitted = sent.filter(({ status }) => status === 200);
  return {
    answeredMs: Math.max(...admitted.map(({ at }) => at)) - decidedAt,
    sentMs: Math.max(...admitted.map(({ sentAt }) => sentAt)) - decidedAt,
  };
}

async function untilAllLetIn({ gateways, person }: World): Promise<void> {
  for (const gateway of gateways) {
    await until("the user is let in again", async () => (await me(gateway, person)).status === 200);
  }
}

/** Sends requests at their times, however long the answers take, to both gateways in turn. */
async function sendDuring<Result>(
  { gateways, person }: World,
  work: () => Promise<Result>,
): Promise<Result & { sent: Sent[] }> {
  const answers: Promise<Sent>[] = [];
  const from = performance.now();
  const sending = setInterval(() => {
    const due = Math.floor((performance.now() - from) * requestsPerSecond / 1_000);
    while (answers.length < due) {
      const gateway = gateways[answers.length % gateways.length];
      if (gateway) answers.push(ask(gateway, person));
    }
  }, 1);
  const result = await work().finally(() => clearInterval(sending));
  return { ...result, sent: (await Promise.all(answers)).toSorted((a, b) => a.at - b.at) };
}

async function ask({ url }: ServiceProcess, { cookie }: LoggedIn): Promise<Sent> {
  const sentAt = Date.now();
  const answer = await fetch(`${url}/v1/me`, { headers: { Cookie: cookie } })
    .then(async (response) => ({ status: response.status, code: (await response.json()).code }))
    .catch((error) => ({ status: 0, code: `${error}` }));
  return { sentAt, at: Date.now(), ...answer };
}
