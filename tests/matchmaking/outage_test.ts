// What callers and operators see while Redis can't do its work.
import assert from "node:assert/strict";
import type { RedisServer } from "../../tools/servers/redis.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { type Answer, assertError, call } from "../support/api.ts";
import { countLogged } from "../support/logs.ts";
import {
  cancel,
  join,
  joined,
  type Matchmaking,
  startMatchmaking,
  startReplica,
  ticket,
  untilPublished,
  untilReady,
} from "../support/matchmaking.ts";
import { scrapeOf, valueOf } from "../support/metrics.ts";
import { ownRedis } from "../support/redis.ts";

const answersWithinMs = 4_500;

function assertUnavailable(answer: Answer): void {
  assertError(answer, 503, "MATCHMAKING_UNAVAILABLE");
  assert.equal(answer.headers.get("Retry-After"), "1");
}

/**
 * Every route answers 503 in time, again and again. A frozen Redis does later what it was asked, so the
 * requests are such that they change nothing for ann.
 */
async function assertAllUnavailable(service: Matchmaking, id: string): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const began = performance.now();
    const answers = await Promise.all([
      join(service, "cem", { mode: "rank", key: "one" }),
      ticket(service, "ann", id),
      ticket(service, "ann", id, "?wait=30s"),
      cancel(service, "eve", id),
    ]);
    for (const answer of answers) assertUnavailable(answer);
    const tookMs = performance.now() - began;
    assert.ok(tookMs < answersWithinMs, `${tookMs} ms`);
  }
}

async function untilNotReady(service: Matchmaking): Promise<void> {
  await until("/readyz names Redis", async () => {
    const { status, text } = await call(`${service.url}/readyz`);
    return status === 503 && /Redis can't be reached/.test(text);
  });
  assert.equal((await call(`${service.url}/livez`)).status, 200);
}

/** It is ready again, and pairs the ticket that waited all the time. */
async function assertResumed(service: Matchmaking, id: string, matches = 1): Promise<void> {
  await untilReady(service);
  const other = await joined(service, "bob");
  for (const [user, one] of [["ann", id], ["bob", other]] as const) {
    assert.equal((await ticket(service, user, one, "?wait=10s")).json.status, "MATCHED");
  }
  assert.equal((await untilPublished(service, 2 * matches)).length, 2 * matches);
  const { log } = service.service;
  assert.ok(countLogged(log, /^Redis (connection lost|can't be reached)/) <= 2);
  const errors = log.filter(({ level }) => level === "error").map(({ message }) => message);
  assert.ok(errors.length <= 1, errors.join("\n")); // of the relay
}

const outages: Record<string, (redis: RedisServer) => Promise<() => Promise<unknown>>> = {
  "is killed and started again": async (redis) => {
    await redis.kill();
    return () => redis.start();
  },
  "is frozen for a while": (redis) => {
    Deno.kill(redis.pid, "SIGSTOP");
    return Promise.resolve(() => Promise.resolve(Deno.kill(redis.pid, "SIGCONT")));
  },
};

for (const [what, begin] of Object.entries(outages)) {
  Deno.test(`while Redis ${what}, all is answered with 503 in time, and the workers pause and resume`, async () => {
    await using redis = await ownRedis({ appendfsync: "always" });
    await using service = await startMatchmaking({ REDIS_URL: redis.url });
    const id = await joined(service, "ann");
    const end = await begin(redis);
    try {
      await assertAllUnavailable(service, id);
      await untilNotReady(service);
      const errors = valueOf(await scrapeOf(service), "mm_dependency_error_total", {
        type: "redis",
      });
      assert.ok((errors ?? 0) >= 12, `${errors}`);
    } finally {
      await end();
    }
    await assertResumed(service, id);
    assert.ok(countLogged(service.service.log, /^Redis (connection lost|can't be reached)/) >= 1);
  });
}

Deno.test("a request that waits for a match when Redis ends gets 503 and not an answer that is too old", async () => {
  await using redis = await ownRedis();
  await using service = await startMatchmaking({ REDIS_URL: redis.url });
  const id = await joined(service, "ann");
  const waiting = ticket(service, "ann", id, "?wait=30s");
  await until("it waits for changes", async () => {
    const [, readers] = await service.redis("PUBSUB", "NUMSUB", "mm:{casual}:changes") as unknown[];
    return readers === 1;
  });
  await redis.kill();
  assertUnavailable(await waiting);
});

Deno.test("a full Redis refuses joins with 503 and stores nothing of them, and those who wait are matched", async () => {
  await using redis = await ownRedis();
  await using service = await startMatchmaking({
    REDIS_URL: redis.url,
    MATCHMAKING_WORKER_ENABLED: "false",
  });
  const ids = { ann: await joined(service, "ann"), bob: await joined(service, "bob") };
  const keys = await service.redis("DBSIZE");
  await service.redis("CONFIG", "SET", "maxmemory", "1mb");
  for (let n = 0; n < 5; n++) assertUnavailable(await join(service, `new-${n}`));
  assert.equal(await service.redis("DBSIZE"), keys);
  assert.equal(await service.redis("ZCARD", "mm:{casual}:queue"), 2);
  for (const [user, id] of Object.entries(ids)) {
    assert.equal((await ticket(service, user, id)).json.status, "QUEUED");
  }
  await service.redis("CONFIG", "SET", "maxmemory", "0");
  await using worker = await startReplica({
    settings: { ...service.settings, MATCHMAKING_WORKER_ENABLED: "true" },
  });
  for (const [user, id] of Object.entries(ids)) {
    assert.equal((await ticket(worker, user, id, "?wait=10s")).json.status, "MATCHED");
  }
  await joined(service, "new-0");
  const errors = service.service.log.filter(({ level }) => level === "error");
  assert.deepEqual(errors, []);
});

Deno.test("a full Redis loses no ticket that a worker has in its hands", async () => {
  await using redis = await ownRedis();
  await using service = await startMatchmaking({ REDIS_URL: redis.url });
  const ann = await joined(service, "ann");
  await service.redis("CONFIG", "SET", "maxmemory", "1mb");
  assertUnavailable(await join(service, "bob"));
  await until("the worker has looked again", async () => {
    return await service.redis("ZSCORE", "mm:{casual}:queue", ann) !== null;
  });
  await service.redis("CONFIG", "SET", "maxmemory", "0");
  const bob = await joined(service, "bob");
  assert.equal((await ticket(service, "bob", bob, "?wait=10s")).json.status, "MATCHED");
  assert.equal((await untilPublished(service, 2)).length, 2);
});

Deno.test("a Redis that only reads is reported, and left as soon as another has its address", async () => {
  await using redis = await ownRedis();
  await using service = await startMatchmaking({ REDIS_URL: redis.url });
  const id = await joined(service, "ann");
  await service.redis("REPLICAOF", "127.0.0.1", "1");
  await untilNotReady(service);
  await assertAllUnavailable(service, id);
  await service.redis("REPLICAOF", "NO", "ONE");
  await assertResumed(service, id);
});

Deno.test("with a wrong password it says so once, is not ready and answers 503", async () => {
  await using redis = await ownRedis();
  const url = new URL(redis.url);
  url.password = "wrong";
  await using right = await startMatchmaking({ REDIS_URL: redis.url });
  await using wrong = await startService("matchmaking", {
    ...right.settings,
    REDIS_URL: url.href,
  });
  await until("it says why", () => countLogged(wrong.log, /can't be reached.*WRONGPASS/) === 1);
  await assertAllUnavailable({ ...right, url: wrong.url }, await joined(right, "ann"));
  await untilNotReady({ ...right, url: wrong.url });
  assert.equal(countLogged(wrong.log, /can't be reached/), 1);
  assert.ok(!JSON.stringify(wrong.log).includes(url.password));
});
