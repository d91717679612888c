// The user of deploy/redis.sh may do what the service needs, and nothing else.
import assert from "node:assert/strict";
import { root } from "../../tools/root.ts";
import { findRedisServer } from "../../tools/servers/find_redis_server.ts";
import { freePort } from "../../tools/servers/free_port.ts";
import { redisCommand } from "../../tools/servers/redis_client.ts";
import { until } from "../../tools/servers/wait.ts";
import {
  cancel,
  join,
  joined,
  startMatchmaking,
  startReplica,
  ticket,
} from "../support/matchmaking.ts";
import { assertError, call } from "../support/api.ts";
import { redisUrlFor, rulesOf, startGuardedRedis } from "../support/redis_users.ts";
import { plantedPassword } from "../../tools/planted.ts";

const quick = {
  MATCHMAKING_BUCKET: "region",
  MATCHMAKING_OUTBOX_BACKOFF_BASE: "10ms",
  MATCHMAKING_OUTBOX_BACKOFF_MIN: "10ms",
  MATCHMAKING_OUTBOX_LEASE: "1s",
  MATCHMAKING_OUTBOX_MAX_ATTEMPTS: "2",
  MATCHMAKING_TICKET_TTL: "5s",
};

for (const durable of ["false", "true"]) {
  Deno.test(`the service works with its rights, with MATCHMAKING_DURABLE=${durable}`, async () => {
    await using redis = await startGuardedRedis({ appendfsync: "always" });
    const REDIS_URL = redisUrlFor("matchmaking", redis);
    await using service = await startMatchmaking({
      ...quick,
      REDIS_URL,
      MATCHMAKING_DURABLE: durable,
    });
    await using replica = await startReplica(service);
    const inEurope = { attributes: { region: "eu" } };
    const waits = ticket(service, "ann", await joined(service, "ann", inEurope), "?wait=10s");
    const bob = await joined(replica, "bob", inEurope);
    assert.equal((await waits).json.status, "MATCHED");
    assert.equal((await cancel(service, "bob", bob)).json.status, "MATCHED");
    const cid = await joined(service, "cid");
    assert.equal((await cancel(replica, "cid", cid)).json.status, "CANCELLED");
    const dan = await joined(service, "dan");
    assert.equal((await ticket(replica, "dan", dan, "?wait=10s")).json.status, "EXPIRED");
    const asOwner = (...command: string[]) => redisCommand(redis.url, ...command);
    const eve = await joined(service, "eve");
    await asOwner("HDEL", `mm:{casual}:ticket:${eve}`, "user_id");
    await until("all is published", async () => await asOwner("XLEN", "mm:{casual}:events") === 0);
    await asOwner("SCRIPT", "FLUSH");
    assert.equal((await join(service, "fay")).status, 200);
    // An entry that can't be read is retried, and ends as a dead letter.
    await asOwner("XADD", "mm:{casual}:events", "*", "event_type", "Unknown");
    await until("it is buried", async () => await asOwner("XLEN", "mm:{casual}:dead") === 1);
    const figures = await call(`${service.url}/metrics`);
    assert.match(figures.text, /^mm_queue_depth\{mode="casual"\} [01]$/m);
    assert.deepEqual(await asOwner("ACL", "LOG"), []);
  });
}

Deno.test("the user may use each command that the service and its scripts use, and no other", async () => {
  const used = new Set(["multi", "exec", "subscribe", "eval", "evalsha", "script|load"]); // by the client
  const containers = /^(xgroup|xinfo|config)$/;
  const note = (name = "", next = "") => {
    const command = name.toLowerCase();
    used.add(containers.test(command) ? `${command}|${next.toLowerCase()}` : command);
  };
  for (
    const folder of ["matchmaking", "matchmaking/scripts", "shared/redis", "shared/outbox/stream"]
  ) {
    for await (const { name, isFile } of Deno.readDir(`${root}${folder}`)) {
      if (!isFile) continue;
      const text = await Deno.readTextFile(`${root}${folder}/${name}`);
      const calls = name.endsWith(".lua")
        ? text.matchAll(/redis\.p?call\('(\w+)'(?:, '(\w+)')?/g)
        : text.matchAll(/(?:[([]|, )\["([A-Z]{3,})"(?:, "(\w+)")?/g);
      for (const [, command, next] of calls) note(command, next);
    }
  }
  used.delete("script"); // with LOAD it is named above
  const allowed = rulesOf("matchmaking").filter((rule) => rule.startsWith("+"));
  assert.deepEqual(allowed.map((rule) => rule.slice(1)).sort(), [...used].sort());
});

const refused: string[][] = [
  ["GET", "other"],
  ["SET", "other", "x"],
  ["SET", "mm", "x"],
  ["HMGET", "session:ann", "token"],
  ["ZADD", "mn:{casual}:queue", "1", "x"],
  ["XADD", "other", "*", "a", "b"],
  ["PUBLISH", "other", "x"],
  ["SUBSCRIBE", "other"],
  ["PSUBSCRIBE", "*"],
  ["EVAL", "return redis.call('GET', KEYS[1])", "1", "other"],
  ["EVAL", "return redis.call('GET', 'other')", "0"],
  ["EVAL", "return redis.call('SET', 'other', 'x')", "0"],
  ["EVAL", "return redis.call('PUBLISH', 'other', 'x')", "0"],
  ["EVAL", "return redis.call('FLUSHALL')", "0"],
  ...["FLUSHALL", "FLUSHDB", "SHUTDOWN", "SAVE", "BGSAVE", "BGREWRITEAOF", "MONITOR", "DBSIZE"]
    .map((name) => [name]),
  ["KEYS", "*"],
  ["SCAN", "0"],
  ["RANDOMKEY"],
  ["DEL", "other"],
  ["UNLINK", "mm:{casual}:queue"],
  ["RENAME", "mm:a", "mm:b"],
  ["DUMP", "mm:{casual}:queue"],
  ["MIGRATE", "127.0.0.1", "1", "mm:a", "0", "1000"],
  ["SELECT", "1"],
  ["SWAPDB", "0", "1"],
  ["CONFIG", "SET", "dir", "/tmp"],
  ["CONFIG", "REWRITE"],
  ["ACL", "LIST"],
  ["ACL", "SETUSER", "matchmaking", "allkeys"],
  ["CLIENT", "LIST"],
  ["CLIENT", "KILL", "TYPE", "normal"],
  ["SCRIPT", "FLUSH"],
  ["SCRIPT", "KILL"],
  ["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('x', function() end)"],
  ["MODULE", "LOAD", "/tmp/x.so"],
  ["REPLICAOF", "127.0.0.1", "1"],
  ["DEBUG", "SLEEP", "0"],
  ["SLOWLOG", "GET"],
  ["XGROUP", "DESTROY", "mm:{casual}:events", "relay"],
  ["XTRIM", "mm:{casual}:events", "MAXLEN", "0"],
];

Deno.test("Redis refuses the user other keys, channels and commands, also from within a script", async () => {
  await using redis = await startGuardedRedis();
  const url = redisUrlFor("matchmaking", redis);
  await redisCommand(redis.url, "MSET", "other", "kept", "mm:{casual}:ticket:x", "1");
  for (const command of refused) {
    await assert.rejects(
      redisCommand(url, ...command),
      /NOPERM|ACL failure in script|MODULE command not allowed|DEBUG command not allowed/,
      command.join(" "),
    );
  }
  assert.equal(await redisCommand(redis.url, "GET", "other"), "kept");
  assert.equal(await redisCommand(redis.url, "DBSIZE"), 2);
  // This shows that such requests are valid.
  assert.equal(
    await redisCommand(
      url,
      "EVAL",
      "return redis.call('GET', KEYS[1])",
      "1",
      "mm:{casual}:ticket:x",
    ),
    "1",
  );
});

Deno.test("while a right is missing, calls get 503, and afterwards users are matched", async () => {
  await using redis = await startGuardedRedis();
  await using service = await startMatchmaking({ REDIS_URL: redisUrlFor("matchmaking", redis) });
  for (const right of ["hset", "evalsha"]) { // within a script, and to call one
    await redisCommand(redis.url, "ACL", "SETUSER", "matchmaking", `-${right}`);
    assertError(await join(service, "ann"), 503, "MATCHMAKING_UNAVAILABLE");
    await redisCommand(redis.url, "ACL", "SETUSER", "matchmaking", `+${right}`);
  }
  const ann = await joined(service, "ann");
  await joined(service, "bob");
  assert.equal((await ticket(service, "ann", ann, "?wait=10s")).json.status, "MATCHED");
});

Deno.test("deploy/redis.sh starts a Redis that asks everybody for a password and keeps its data", async () => {
  const folder = await Deno.makeTempDir({ prefix: "kenri-redis-" });
  const port = freePort();
  const program = `#!/bin/sh\nexec '${await findRedisServer()}' "$@"\n`;
  await Deno.writeTextFile(`${folder}/redis-server`, program, { mode: 0o755 });
  const end = new AbortController();
  const start = () =>
    new Deno.Command(`${root}deploy/redis.sh`, {
      signal: end.signal,
      args: ["--port", `${port}`, "--bind", "127.0.0.1", "--dir", folder],
      env: {
        PATH: `${folder}:${Deno.env.get("PATH")}`,
        MATCHMAKING_REDIS_PASSWORD: plantedPassword,
        OPERATOR_REDIS_PASSWORD: plantedPassword,
      },
      stdout: "null",
    }).spawn();
  const [ours, operator] = [
    redisUrlFor("matchmaking", { port }),
    redisUrlFor("operator", { port }),
  ];
  const isUp = () => redisCommand(ours, "PING").then(() => true, () => false);
  try {
    for (const time of ["first", "second"]) {
      const server = start();
      await until("it answers", isUp);
      if (time === "first") await redisCommand(ours, "SET", "mm:x", "kept");
      assert.equal(await redisCommand(ours, "GET", "mm:x"), "kept");
      const stranger = `redis://127.0.0.1:${port}`;
      await assert.rejects(redisCommand(stranger, "PING"), /NOAUTH/);
      for (
        const url of [`redis://default:x@127.0.0.1:${port}`, ours.replace(plantedPassword, "x")]
      ) {
        await assert.rejects(redisCommand(url, "PING"), /WRONGPASS/);
      }
      assert.deepEqual(await redisCommand(operator, "CONFIG", "GET", "maxmemory-policy"), [
        ...["maxmemory-policy", "noeviction"],
      ]);
      const started = await Deno.readTextFile(`/proc/${server.pid}/cmdline`);
      assert.ok(/redis/.test(started) && !started.includes(plantedPassword), started);
      server.kill("SIGTERM");
      assert.equal((await server.status).code, 0);
    }
  } finally {
    end.abort();
    await Deno.remove(folder, { recursive: true });
  }
});
