// A node of a cluster refuses keys of several slots in one command. All keys of a mode have one slot.
import assert from "node:assert/strict";
import { until } from "../../tools/servers/wait.ts";
import {
  age,
  cancel,
  joined,
  startMatchmaking,
  ticket,
  untilPublished,
} from "../support/matchmaking.ts";
import { ownRedis, redisCommand } from "../support/redis.ts";

Deno.test("all scripts run on a node of a cluster, with buckets and with several modes", async () => {
  await using redis = await ownRedis({ settings: "databases 1\ncluster-enabled yes" });
  await redisCommand(redis.url, "CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  await until("the cluster is there", async () => {
    return /cluster_state:ok/.test(`${await redisCommand(redis.url, "CLUSTER", "INFO")}`);
  });
  await assert.rejects(redisCommand(redis.url, "MGET", "a", "b"), /CROSSSLOT/);
  await using service = await startMatchmaking({
    REDIS_URL: redis.url,
    MATCHMAKING_BUCKET: "region",
  });
  let events = 0;
  for (const mode of ["casual", "rank"]) {
    const eu = { mode, attributes: { region: "eu}:{x" } };
    const ids: Record<string, string> = {};
    for (const user of ["ann", "{bob}"]) ids[user] = await joined(service, user, eu);
    for (const [user, id] of Object.entries(ids)) {
      assert.equal((await ticket(service, user, id, "?wait=10s")).json.status, "MATCHED");
    }
    const cem = await joined(service, "cem", { mode });
    assert.equal((await cancel(service, "cem", cem)).json.status, "CANCELLED");
    const dan = await joined(service, "dan", { mode });
    await age(service, dan, mode);
    assert.equal((await ticket(service, "dan", dan, "?wait=10s")).json.status, "EXPIRED");
    const eva = await joined(service, "eva", { mode });
    await service.redis("DEL", `mm:{${mode}}:ticket:${eva}`);
    events += 4;
    await untilPublished(service, events);
  }
  const errors = service.service.log.filter(({ level }) => level === "error");
  assert.deepEqual(errors, []);
});
