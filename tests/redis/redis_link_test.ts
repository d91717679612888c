// The connection to Redis: scripts, messages, loss and return.
import assert from "node:assert/strict";
import { StartRefused } from "../../shared/process/start_refused.ts";
import { RedisUnavailable } from "../../shared/redis/errors.ts";
import { RedisLink } from "../../shared/redis/redis_link.ts";
import { scriptOf } from "../../shared/redis/script.ts";
import { until } from "../../tools/servers/wait.ts";
import { ownRedis, redisCommand } from "../support/redis.ts";
import { collectingLog } from "../support/relays.ts";

const count = scriptOf("count", "return redis.call('INCRBY', KEYS[1], ARGV[1])");

interface Running extends AsyncDisposable {
  link: RedisLink;
  lines: string[];
}

function start(url: string, listen: (message: string) => void = () => {}): Running {
  const { log, lines } = collectingLog();
  const link = new RedisLink({ url, name: "test", scripts: [count] }, log);
  link.subscribe("news", listen);
  const stopping = new AbortController();
  const running = link.run(stopping.signal);
  return {
    link,
    lines,
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      await running;
      await link.close();
    },
  };
}

const untilConnected = (link: RedisLink) => until("it is connected", () => link.connected);

Deno.test("scripts are known from the start, and sent again to a server that has forgotten them", async () => {
  await using redis = await ownRedis();
  await using running = start(redis.url);
  const { link } = running;
  await untilConnected(link);
  assert.deepEqual(await redisCommand(redis.url, "SCRIPT", "EXISTS", count.sha), [1]);
  assert.equal(await link.runScript(count, ["n"], ["2"]), 2);
  await redisCommand(redis.url, "SCRIPT", "FLUSH");
  const answers = await Promise.all([1, 2, 3].map(() => link.runScript(count, ["n"], ["1"])));
  assert.deepEqual(answers, [3, 4, 5]);
});

Deno.test("a script that can't be compiled refuses the start with its name", async () => {
  await using redis = await ownRedis();
  const { log } = collectingLog();
  const broken = scriptOf("broken", "return return");
  const link = new RedisLink({ url: redis.url, name: "test", scripts: [count, broken] }, log);
  await assert.rejects(link.run(new AbortController().signal), (error) => {
    assert.ok(error instanceof StartRefused);
    assert.match(error.message, /^Redis can't compile the script broken: .*near 'return'/);
    return true;
  });
});

Deno.test("a call that is wrong is an error of the caller, and one that Redis can't do now is not", async () => {
  await using redis = await ownRedis();
  await using running = start(redis.url);
  const { link } = running;
  await untilConnected(link);
  await link.command(["SET", "text", "x"]);
  const wrong = [["INCR", "text"], ["NOSUCH"], ["GET"]];
  for (const args of wrong) {
    await assert.rejects(link.command(args), (error) => !(error instanceof RedisUnavailable));
  }
  await assert.rejects(
    link.runScript(count, ["text"], ["1"]),
    (error) => !(error instanceof RedisUnavailable),
  );
  await redisCommand(redis.url, "CONFIG", "SET", "maxmemory", "1mb");
  await assert.rejects(link.command(["SET", "text", "y"]), RedisUnavailable);
  assert.equal(await link.command(["GET", "text"]), "x");
  assert.ok(link.connected);
});

Deno.test("commands together have their effect together", async () => {
  await using redis = await ownRedis();
  await using running = start(redis.url);
  const { link } = running;
  await untilConnected(link);
  assert.deepEqual(await link.together([["SET", "a", "1"], ["INCR", "a"]]), ["OK", 2]);
  await assert.rejects(link.together([["INCR", "a"], ["NOSUCH"]]));
  assert.equal(await link.command(["GET", "a"]), "2");
});

Deno.test("a lost connection fails calls at once, is reported once, and comes back with its messages", async () => {
  await using redis = await ownRedis();
  const heard: string[] = [];
  await using running = start(redis.url, (message) => heard.push(message));
  const { link, lines } = running;
  await untilConnected(link);
  await redisCommand(redis.url, "PUBLISH", "news", "one");
  await until("it is heard", () => heard.length === 1);
  await redis.kill();
  await until("the loss is noticed", () => !link.connected);
  const began = performance.now();
  for (let n = 0; n < 50; n++) await assert.rejects(link.command(["PING"]), RedisUnavailable);
  assert.ok(performance.now() - began < 1_000);
  assert.equal(await link.answers(), false);
  await until("it has tried", () => lines.some((line) => /can't be reached/.test(line)));
  await redis.start();
  await untilConnected(link);
  await redisCommand(redis.url, "PUBLISH", "news", "two");
  await until("it is heard again", () => heard.length === 2);
  assert.deepEqual(heard, ["one", "two"]);
  const warnings = lines.filter((line) => line.startsWith("warn") && !/once a second/.test(line));
  assert.equal(warnings.length, 2, warnings.join("\n"));
  assert.match(warnings[0] ?? "", /^warn Redis connection lost$/);
});

Deno.test("a connection that somebody closes is made again within a second", async () => {
  await using redis = await ownRedis();
  await using running = start(redis.url);
  const { link } = running;
  await untilConnected(link);
  await redisCommand(redis.url, "CLIENT", "KILL", "TYPE", "pubsub");
  await until("it is lost", () => !link.connected, 2_000);
  await until("it is there again", () => link.connected, 2_000);
  assert.equal(await link.answers(), true);
});

Deno.test("a server that is silent is left, and used again when it answers", async () => {
  await using redis = await ownRedis();
  await using running = start(redis.url);
  const { link } = running;
  await untilConnected(link);
  Deno.kill(redis.pid, "SIGSTOP");
  const began = performance.now();
  const calls = [1, 2, 3].map(() => assert.rejects(link.command(["PING"]), RedisUnavailable));
  await Promise.all(calls);
  const tookMs = performance.now() - began;
  assert.ok(tookMs > 2_500 && tookMs < 4_500, `${tookMs} ms`);
  assert.equal(link.connected, false);
  Deno.kill(redis.pid, "SIGCONT");
  await untilConnected(link);
  assert.equal(await link.answers(), true);
});

Deno.test("a replica is not used, and neither is a server that becomes one", async () => {
  await using redis = await ownRedis();
  await using running = start(redis.url);
  const { link, lines } = running;
  await untilConnected(link);
  await redisCommand(redis.url, "REPLICAOF", "127.0.0.1", "1");
  await assert.rejects(link.runScript(count, ["n"], ["1"]), RedisUnavailable);
  assert.equal(link.connected, false);
  await until("it says why", () => lines.some((line) => /is a replica/.test(line)));
  await redisCommand(redis.url, "REPLICAOF", "NO", "ONE");
  await untilConnected(link);
  assert.equal(await link.runScript(count, ["n"], ["1"]), 1);
});

Deno.test("while Redis reads its data it is not used", async () => {
  await using redis = await ownRedis();
  for (let n = 0; n < 20; n++) {
    const fill = `for i = 1, 20000 do redis.call('SET', '${n}:' .. i, string.rep('x', 50)) end`;
    await redisCommand(redis.url, "EVAL", fill, "0");
  }
  await using running = start(redis.url);
  const { link, lines } = running;
  await untilConnected(link);
  await redis.kill();
  const starting = redis.start();
  await untilConnected(link);
  assert.equal(await link.command(["DBSIZE"]), 400_000);
  await starting;
  assert.ok(lines.filter((line) => /can't be reached/.test(line)).length <= 1);
});
