// What the service says about a Redis that may lose data, and what it does where nothing may be lost.
import assert from "node:assert/strict";
import type { Settings } from "../../tools/servers/service_process.ts";
import { runArguments } from "../../tools/services.ts";
import { until } from "../../tools/servers/wait.ts";
import { root } from "../../tools/root.ts";
import { assertError } from "../support/api.ts";
import { countLogged } from "../support/logs.ts";
import {
  cancel,
  join,
  joined,
  startMatchmaking,
  ticket,
  untilPublished,
  untilReady,
} from "../support/matchmaking.ts";
import { ownRedis, redisCommand } from "../support/redis.ts";
import { natsUrl } from "../support/streams.ts";

const durable = { MATCHMAKING_DURABLE: "true" };

async function canConfirm(url: string): Promise<boolean> {
  const [, version] = /redis_version:(\d+\.\d+)/.exec(`${await redisCommand(url, "INFO")}`) ?? [];
  return Number(version) >= 7.2;
}

/** The end of a process that does not start. */
async function refusedStart(settings: Settings): Promise<{ code: number; output: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: runArguments("matchmaking", (name) => settings[name]),
    cwd: root,
    env: { ...settings, NO_COLOR: "1" },
  }).output();
  const decoded = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, output: decoded.join("") };
}

const lines: [Parameters<typeof ownRedis>[0], RegExp | undefined][] = [
  [{ appendonly: false }, /^Redis has no append-only file, so all its data is lost when it ends$/],
  [{ appendfsync: "everysec" }, /^Redis writes its file .* once a second.* last second$/],
  [{ appendfsync: "always" }, undefined],
];
for (const [options, line] of lines) {
  Deno.test(`a start says in one line what ${JSON.stringify(options)} can lose`, async () => {
    await using redis = await ownRedis(options);
    await using service = await startMatchmaking({ REDIS_URL: redis.url });
    const { log } = service.service;
    const warnings = log.filter(({ level, message }) =>
      level === "warning" && /Redis/.test(message)
    );
    assert.deepEqual(warnings.length, line ? 1 : 0);
    if (line) assert.match(warnings[0]?.message ?? "", line);
    await redis.kill();
    await redis.start();
    await untilReady(service);
    await until("it has connected again", () => countLogged(log, /^Connected to Redis/) === 2);
    if (line) assert.equal(countLogged(log, line), 1);
  });
}

Deno.test("where changes must be on the disk, a Redis that can't confirm that is refused with exit code 1", async () => {
  const policies = [{ appendonly: false }, { appendfsync: "no" }] as const;
  for (const options of [...policies, { appendfsync: "everysec" } as const]) {
    await using redis = await ownRedis(options);
    const confirms = await canConfirm(redis.url);
    if (confirms && options !== policies[0] && options !== policies[1]) continue;
    const { code, output } = await refusedStart({
      ...durable,
      REDIS_URL: redis.url,
      NATS_URL: natsUrl,
      MATCHMAKING_HTTP_PORT: "0",
    });
    assert.equal(code, 1, output);
    const wanted = confirms
      ? /MATCHMAKING_DURABLE needs append(only to be yes|fsync to be always or everysec) in Redis/
      : /MATCHMAKING_DURABLE needs Redis 7\.2 or newer, and this is 7\.0/;
    assert.match(output, wanted);
    assert.doesNotMatch(output, /Uncaught| {4}at /);
  }
});

Deno.test("where changes must be on the disk, an answer comes after that, and a kill right after it loses nothing", async () => {
  await using redis = await ownRedis({ appendfsync: "everysec" });
  if (!await canConfirm(redis.url)) return;
  await using service = await startMatchmaking({ ...durable, REDIS_URL: redis.url });
  const tookMs: number[] = [];
  for (let round = 0; round < 3; round++) {
    const began = performance.now();
    const id = await joined(service, "ann");
    tookMs.push(performance.now() - began);
    await redis.kill();
    await redis.start();
    await untilReady(service);
    assert.equal((await ticket(service, "ann", id)).json.status, "QUEUED");
    await cancel(service, "ann", id);
    assert.equal((await ticket(service, "ann", id)).json.status, "CANCELLED");
  }
  assert.ok(Math.max(...tookMs) > 100, `${tookMs}: none waited for the disk`);
  for (const user of ["bob", "cem"]) await joined(service, user);
  assert.equal((await untilPublished(service, 2)).length, 2);
});

Deno.test("where changes must be on the disk, one that does not get there in time is not confirmed", async () => {
  await using redis = await ownRedis({ appendfsync: "always" });
  if (!await canConfirm(redis.url)) return;
  await using service = await startMatchmaking({
    ...durable,
    REDIS_URL: redis.url,
    MATCHMAKING_WORKER_ENABLED: "false",
  });
  await service.redis("CONFIG", "SET", "appendfsync", "no");
  const late = await join(service, "ann", { key: "one" });
  assertError(late, 503, "MATCHMAKING_UNAVAILABLE");
  await service.redis("CONFIG", "SET", "appendfsync", "always");
  await service.redis("SET", "anything", "writes the file");
  const again = await join(service, "ann", { key: "one" });
  assert.deepEqual([again.status, again.json.status], [200, "QUEUED"]);
  assert.equal(await service.redis("ZCARD", "mm:{casual}:queue"), 1);
});
