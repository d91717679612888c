// A Redis that has no more memory, with the settings and the user of deploy/.
import assert from "node:assert/strict";
import { redisCommand } from "../../tools/servers/redis_client.ts";
import { until } from "../../tools/servers/wait.ts";
import { assertError } from "../support/api.ts";
import { join, startMatchmaking, startReplica, ticket } from "../support/matchmaking.ts";
import { redisUrlFor, startGuardedRedis } from "../support/redis_users.ts";
import { natsUrl, readStream } from "../support/streams.ts";

const attributes = { text: "x".repeat(4_000) };

Deno.test("a full Redis refuses new tickets, keeps all it has, and pairs those who wait", async () => {
  const config = await Deno.readTextFile(new URL("../../deploy/redis.conf", import.meta.url));
  await using redis = await startGuardedRedis({ settings: config.replace(/^port .*/m, "") });
  const asOwner = (...command: string[]) => redisCommand(redis.url, ...command);
  const memory = async () =>
    Number(/^used_memory:(\d+)/m.exec(`${await asOwner("INFO", "memory")}`)?.[1]);
  await using service = await startMatchmaking({
    MATCHMAKING_WORKER_ENABLED: "false",
    REDIS_URL: redisUrlFor("matchmaking", redis),
  });
  await asOwner("CONFIG", "SET", "maxmemory", `${await memory() + 1_000_000}`);
  const tickets: string[] = [];
  const joinNext = () => join(service, `user-${tickets.length}`, { attributes });
  let refused = await joinNext();
  while (refused.status === 200 && tickets.length < 1_000) {
    tickets.push(refused.json.ticket_id);
    refused = await joinNext();
  }
  assertError(refused, 503, "MATCHMAKING_UNAVAILABLE");
  assert.equal(refused.headers.get("Retry-After"), "1");
  assert.ok(tickets.length > 50, `${tickets.length}`);
  assert.equal(await asOwner("ZCARD", "mm:{casual}:queue"), tickets.length);

  await using _worker = await startReplica({
    settings: { ...service.settings, MATCHMAKING_WORKER_ENABLED: "true" },
  });
  const matched = tickets.length - tickets.length % 2;
  for (const [at, id] of tickets.slice(0, matched).entries()) {
    assert.equal((await ticket(service, `user-${at}`, id, "?wait=10s")).json.status, "MATCHED");
  }
  await until(
    "all are announced",
    async () => (await readStream(natsUrl, service.stream)).length === matched,
  );
});
