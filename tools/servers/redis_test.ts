import assert from "node:assert/strict";
import { startRedis } from "./redis.ts";
import { redisCommand } from "./redis_client.ts";

Deno.test("what Redis has on disk survives kill and start, and is gone after a wipe", async () => {
  await using redis = await startRedis({ appendfsync: "always" });
  const { port } = redis;
  await redisCommand(`${redis.url}/7`, "XADD", "kept", "1-1", "name", "Kénri");
  const entries = () => redisCommand(`${redis.url}/7`, "XRANGE", "kept", "-", "+");

  await redis.kill();
  await assert.rejects(entries(), /refused/);
  await redis.start();
  assert.equal(redis.port, port);
  assert.deepEqual(await entries(), [["1-1", ["name", "Kénri"]]]);

  await assert.rejects(redis.start(), /running already/);
  await assert.rejects(redis.wipe(), /Stop redis-server before/);
  await redis.stop();
  await redis.wipe();
  await redis.start();
  assert.deepEqual(await entries(), []);
});

Deno.test("Redis without its log of commands begins empty at each start", async () => {
  await using redis = await startRedis({ appendonly: false });
  await redisCommand(redis.url, "SET", "lost", 1);
  await redis.stop();
  assert.deepEqual(await Array.fromAsync(Deno.readDir(redis.dataDir)), []);
  await redis.start();
  assert.equal(await redisCommand(redis.url, "GET", "lost"), null);
});

Deno.test("Redis as a cluster of one node has every slot", async () => {
  await using redis = await startRedis({ settings: "cluster-enabled yes" });
  assert.equal(await redisCommand(redis.url, "CLUSTER", "ADDSLOTSRANGE", 0, 16_383), "OK");
  const info = await redisCommand(redis.url, "CLUSTER", "INFO");
  assert.match(String(info), /cluster_slots_assigned:16384/);
});

Deno.test("a Redis that can't start reports its own error", async () => {
  await assert.rejects(startRedis({ settings: "hz often" }), /'hz often'/);
  await using first = await startRedis();
  await assert.rejects(startRedis({ port: first.port }), /address already in use/i);
});
