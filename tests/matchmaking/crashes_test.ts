// M-108: whatever ends between a match and its announcement, each match is published once.
import assert from "node:assert/strict";
import { startNats } from "../../tools/servers/nats.ts";
import { redisCommand } from "../../tools/servers/redis_client.ts";
import { until } from "../../tools/servers/wait.ts";
import { countLogged } from "../support/logs.ts";
import {
  joined,
  type Matchmaking,
  published,
  startMatchmaking,
  startReplica,
  ticket,
  untilPublished,
  untilReady,
} from "../support/matchmaking.ts";
import { ownRedis } from "../support/redis.ts";
import { scrapeOf, valueOf } from "../support/metrics.ts";

const quick = { MATCHMAKING_OUTBOX_LEASE: "2s", MATCHMAKING_OUTBOX_POLL_INTERVAL: "200ms" };

/** Two users are matched, and the events of that wait in Redis. */
async function matchTwo(service: Matchmaking): Promise<Record<string, string>> {
  const ids: Record<string, string> = {};
  for (const user of ["ann", "bob"]) ids[user] = await joined(service, user);
  await assertMatched(service, ids);
  return ids;
}

async function assertMatched(service: { url: string }, ids: Record<string, string>): Promise<void> {
  for (const [user, id] of Object.entries(ids)) {
    const { json } = await ticket(service, user, id, "?wait=10s");
    assert.equal(json.status, "MATCHED", user);
  }
}

async function assertPublishedOnce(service: Matchmaking): Promise<void> {
  const events = await untilPublished(service, 2);
  assert.deepEqual(events.map(({ user_id }) => user_id).sort(), ["ann", "bob"]);
  assert.equal(new Set(events.map(({ match_id }) => match_id)).size, 1);
}

Deno.test("M-108: killed between the match and its announcement, another replica announces it", async () => {
  await using nats = await startNats();
  await using service = await startMatchmaking({ ...quick, NATS_URL: nats.url });
  await nats.kill();
  const ids = await matchTwo(service);
  assert.equal(await service.redis("XLEN", "mm:{casual}:events"), 2);
  await service.service.kill();
  await nats.start();
  await using other = await startReplica(service);
  await assertPublishedOnce(service);
  await assertMatched(other, ids);
});

Deno.test("M-108: killed after it has published and before it knows, another replica takes over, and the event is in the stream once", async () => {
  await using nats = await startNats();
  await using service = await startMatchmaking({ ...quick, NATS_URL: nats.url });
  Deno.kill(nats.pid, "SIGSTOP");
  const ids = await matchTwo(service);
  await until("the relay has the events", async () => {
    const pending = await service.redis("XPENDING", "mm:{casual}:events", "relay") as unknown[];
    return pending[0] === 2;
  });
  await service.service.kill();
  Deno.kill(nats.pid, "SIGCONT");
  await until(
    "what was sent is in the stream",
    async () => (await published(service)).length === 2,
  );
  assert.equal(await service.redis("XLEN", "mm:{casual}:events"), 2, "and not settled");
  await using other = await startReplica(service);
  await assertPublishedOnce(service);
  await assertMatched(other, ids);
});

Deno.test("M-108: while NATS is down the events wait in Redis, and no attempt is counted", async () => {
  await using nats = await startNats();
  await using service = await startMatchmaking({ ...quick, NATS_URL: nats.url });
  await nats.kill();
  await matchTwo(service);
  await until("the waiting events are shown", async () => {
    return valueOf(await scrapeOf(service), "mm_events_waiting") === 2;
  });
  const attempts = async () =>
    (await scrapeOf(service)).samples
      .filter(({ name, labels }) =>
        /attempt|failed|retr/.test(name) && labels["table"] === "events"
      )
      .reduce((sum, { value }) => sum + value, 0);
  assert.equal(await attempts(), 0);
  await nats.start();
  await assertPublishedOnce(service);
  assert.equal(await attempts(), 0);
  assert.equal(await service.redis("XLEN", "mm:{casual}:dead"), 0);
});

Deno.test("M-108: Redis killed and restarted with its append-only file has the match and its events", async () => {
  await using redis = await ownRedis({ appendfsync: "always" });
  await using nats = await startNats();
  const urls = { REDIS_URL: redis.url, NATS_URL: nats.url };
  await using service = await startMatchmaking({ ...quick, ...urls });
  await nats.kill();
  const ids = await matchTwo(service);
  await redis.kill();
  await redis.start();
  assert.equal(await redisCommand(redis.url, "XLEN", "mm:{casual}:events"), 2);
  await nats.start();
  await assertPublishedOnce(service);
  await untilReady(service);
  await assertMatched(service, ids);
  await joined(service, "ann");
});

Deno.test("M-108: a Redis that has forgotten the scripts gets them again, and each match is published once", async () => {
  await using redis = await ownRedis();
  await using service = await startMatchmaking({ ...quick, REDIS_URL: redis.url });
  await service.redis("SCRIPT", "FLUSH");
  await matchTwo(service);
  await service.redis("SCRIPT", "FLUSH");
  await assertPublishedOnce(service);
  assert.equal(countLogged(service.service.log, /NOSCRIPT|paused/), 0);
});
