// Many workers, and users who cancel while they are matched.
import assert from "node:assert/strict";
import { queueOf } from "../../matchmaking/keys.ts";
import { matchTickets, Rings } from "../../matchmaking/match_tickets.ts";
import { scripts } from "../../matchmaking/scripts/scripts.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { makesChanges } from "../../shared/redis/confirmed.ts";
import { RedisLink } from "../../shared/redis/redis_link.ts";
import { until } from "../../tools/servers/wait.ts";
import {
  cancel,
  joined,
  type Matchmaking,
  startMatchmaking,
  startReplica,
  ticket,
  untilPublished,
} from "../support/matchmaking.ts";
import { collectingLog } from "../support/relays.ts";

async function atOnce<Item>(
  items: Item[],
  lanes: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  await Promise.all(Array.from({ length: lanes }, async () => {
    for (const item of rest) await work(item);
  }));
}

Deno.test("M-104: of 1,000 tickets that are cancelled while they are matched none is both", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_WORKER_ENABLED: "false" });
  await using _worker = await startReplica({
    settings: {
      ...service.settings,
      MATCHMAKING_WORKER_ENABLED: "true",
      MATCHMAKING_WORKER_POLL_INTERVAL: "15ms",
      MATCHMAKING_WORKER_BATCH_SIZE: "10",
    },
  });
  const users = Array.from({ length: 1_000 }, (_, n) => `user-${n}`);
  const ids = new Map<string, string>();
  const answered = new Map<string, string>();
  await atOnce(users, 25, async (user) => {
    const id = await joined(service, user);
    ids.set(user, id);
    answered.set(user, (await cancel(service, user, id)).json.status);
  });
  const ends = [...answered.values()];
  const matched = ends.filter((status) => status === "MATCHED").length;
  assert.equal(matched + ends.filter((status) => status === "CANCELLED").length, 1_000);
  assert.ok(matched >= 50 && matched <= 950, `${matched} were matched, so this was no race`);
  const events = await untilPublished(service, matched);
  assert.equal(events.length, matched);
  const inMatches = new Map(events.map((event) => [event.user_id, event]));
  await atOnce(users, 25, async (user) => {
    const { json } = await ticket(service, user, ids.get(user) ?? "");
    assert.equal(json.status, answered.get(user), user);
    const event = inMatches.get(user);
    assert.equal(event !== undefined, json.status === "MATCHED", user);
    if (!event) return;
    const [peer = ""] = json.matched.peer_user_ids;
    assert.equal(inMatches.get(peer)?.match_id, json.matched.match_id);
    assert.deepEqual(inMatches.get(peer)?.peer_user_ids, [user]);
  });
  assert.equal(await service.redis("ZCARD", "mm:{casual}:queue"), 0);
});

/** Loops as those of eight processes, each with a connection of its own. */
function startLoops({ redisUrl }: Matchmaking, batchSize: number): AsyncDisposable {
  const { log } = collectingLog();
  const stopping = new AbortController();
  const links = Array.from(
    { length: 8 },
    () => new RedisLink({ url: redisUrl, name: "loop", scripts: Object.values(scripts) }, log),
  );
  const running = links.flatMap((redis) => [
    redis.run(stopping.signal),
    matchTickets(
      { redis, change: makesChanges(redis), rings: new Rings(["casual"], new Wakeup()), log },
      "casual",
      { pollIntervalMs: 5, batchSize, hasBuckets: true },
      stopping.signal,
    ),
  ]);
  return {
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      await Promise.all(running);
      for (const link of links) await link.close();
    },
  };
}

Deno.test("M-107: with eight workers every ticket is in one match, and in a bucket the oldest are matched first", async () => {
  await using service = await startMatchmaking({
    MATCHMAKING_WORKER_ENABLED: "false",
    MATCHMAKING_BUCKET: "region",
  });
  const regions = ["eu", "us", ""];
  const attributesOf = (region: string) => region === "" ? {} : { region };
  const ownerOf = new Map<string, string>();
  const users = Array.from({ length: 600 }, (_, n) => [`user-${n}`, regions[n % 3] ?? ""] as const);
  await atOnce(users, 20, async ([user, region]) => {
    const id = await joined(service, user, { attributes: attributesOf(region) });
    ownerOf.set(id, user);
  });
  const queues = await Promise.all(regions.map(async (region) => {
    const ids = await service.redis("ZRANGE", queueOf("casual", region), "0", "-1") as string[];
    return ids.map((id) => ownerOf.get(id) ?? "");
  }));
  assert.deepEqual(queues.map(({ length }) => length), [200, 200, 200]);
  await using _loops = startLoops(service, 4);
  const events = await untilPublished(service, 600);
  assert.equal(events.length, 600);
  assert.equal(new Set(events.map(({ ticket_id }) => ticket_id)).size, 600);
  assert.equal(new Set(events.map(({ match_id }) => match_id)).size, 300);
  const peers = new Map(events.map(({ user_id, peer_user_ids: [peer] }) => [user_id, peer]));
  for (const queue of queues) {
    for (let at = 0; at < queue.length; at += 2) {
      const [one = "", other = ""] = queue.slice(at, at + 2);
      assert.deepEqual([peers.get(one), peers.get(other)], [other, one], `at ${at}`);
    }
  }
});

Deno.test("M-107: tickets that arrive while eight workers and two replicas match are in one match each", async () => {
  await using service = await startMatchmaking();
  await using other = await startReplica(service);
  await using _loops = startLoops(service, 200);
  const users = Array.from({ length: 1_000 }, (_, n) => n);
  await atOnce(users, 20, async (n) => {
    await joined(n % 2 === 0 ? service : other, `user-${n}`);
  });
  const events = await untilPublished(service, 1_000);
  assert.equal(events.length, 1_000);
  const peers = new Map(events.map(({ user_id, peer_user_ids: [peer] }) => [user_id, peer]));
  assert.equal(peers.size, 1_000);
  for (const [user, peer = ""] of peers) assert.equal(peers.get(peer), user);
  for (const [, members] of Map.groupBy(events, ({ match_id }) => match_id)) {
    assert.equal(members.length, 2);
  }
});

Deno.test("M-107: in a bucket with nobody else a ticket holds up no other, and its bucket is forgotten", async () => {
  await using service = await startMatchmaking({ MATCHMAKING_BUCKET: "region" });
  const lonely = [];
  for (let n = 0; n < 20; n++) {
    const user = `lonely-${n}`;
    const id = await joined(service, user, { attributes: { region: `r:${n}%/é` } });
    lonely.push({ user, id });
  }
  const ids: Record<string, string> = {};
  for (const user of ["ann", "bob"]) {
    ids[user] = await joined(service, user, { attributes: { region: "eu" } });
  }
  const { json } = await ticket(service, "ann", ids["ann"] ?? "", "?wait=10s");
  assert.deepEqual(json.matched.peer_user_ids, ["bob"]);
  for (const { user, id } of lonely) {
    assert.equal((await cancel(service, user, id)).json.status, "CANCELLED");
  }
  await until(
    "all buckets are forgotten",
    async () => await service.redis("SCARD", "mm:{casual}:buckets") === 0,
  );
});
