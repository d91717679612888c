import assert from "node:assert/strict";
import pg from "pg";

import { startNats } from "./nats.ts";
import { connectTo } from "./nats_client.ts";
import { type PostgresServer, startPostgres } from "./postgres.ts";
import { redisCommand } from "./redis_client.ts";
import { startServers } from "./servers.ts";
import { isGone, occupyBackend } from "./test_processes.ts";
import { until } from "./wait.ts";
import { root } from "../root.ts";

Deno.test("all servers answer as soon as they are ready", async () => {
  const lines: string[] = [];
  await using servers = await startServers({ say: (line) => lines.push(line) });

  const [row] = await query(servers.postgres, "show server_version");
  assert.match(row.server_version, /^1[5-9]\./);
  const [durability] = await query(servers.postgres, "select current_setting('fsync') as fsync");
  assert.equal(durability.fsync, "on");

  const connection = await connectTo(servers.nats.url);
  const account = await (await connection.jetstreamManager()).getAccountInfo();
  assert.equal(account.streams, 0);
  await connection.close();

  assert.equal(await redisCommand(servers.redis.url, "DBSIZE"), 0);

  for (const { address, url } of [servers.postgres, servers.nats, servers.redis]) {
    assert.equal(lines.filter((line) => line.startsWith(`${address} is ready after`)).length, 1);
    const { password } = new URL(url);
    assert.ok(password.length > 40 && !lines.join("\n").includes(password));
  }
});

Deno.test("two servers of one kind get ports and data of their own", async () => {
  await using first = await startServers();
  await using second = await startServers();
  const ports = [first, second]
    .flatMap(({ postgres, nats, redis }) => [postgres.port, nats.port, redis.port]);
  assert.equal(new Set(ports).size, 6);
  await query(first.postgres, "create table only_here (id int)");
  await assert.rejects(query(second.postgres, "select * from only_here"), /does not exist/);
});

Deno.test("a committed row survives kill and start, on the same port", async () => {
  await using postgres = await startPostgres();
  const { port } = postgres;
  await query(postgres, "create table kept (id int)");
  await query(postgres, "insert into kept values (7)");

  await postgres.kill();
  await assert.rejects(query(postgres, "select 1"));
  await postgres.start();

  assert.equal(postgres.port, port);
  assert.deepEqual(await query(postgres, "select id from kept"), [{ id: 7 }]);
});

Deno.test("a stream message survives kill and start, and is gone after a wipe", async () => {
  await using nats = await startNats();
  const { port } = nats;
  const messages = async () => {
    const connection = await connectTo(nats.url);
    const streams = await (await connection.jetstreamManager()).streams.list().next();
    await connection.close();
    return streams.map(({ config, state }) => [config.name, state.messages]);
  };
  const connection = await connectTo(nats.url);
  await (await connection.jetstreamManager()).streams.add({ name: "KEPT", subjects: ["kept.>"] });
  await connection.jetstream().publish("kept.one");
  await connection.close();

  await nats.kill();
  await nats.start();
  assert.equal(nats.port, port);
  assert.deepEqual(await messages(), [["KEPT", 1]]);

  await assert.rejects(nats.start(), /running already/);
  await assert.rejects(nats.wipe(), /Stop nats-server before/);
  await nats.stop();
  await nats.wipe();
  await nats.start();
  assert.deepEqual(await messages(), []);
});

Deno.test("kill ends a backend that is too busy to handle signals", async () => {
  await using postgres = await startPostgres();
  const backend = await occupyBackend(postgres);
  await postgres.kill();
  assert.ok(isGone(postgres.pid));
  await until("the backend is gone", () => isGone(backend));
  await postgres.start();
});

Deno.test("a server that was stopped with SIGSTOP is ended like any other", async () => {
  const servers = await startServers();
  const pids = [servers.postgres.pid, servers.nats.pid, servers.redis.pid];
  for (const pid of pids) Deno.kill(pid, "SIGSTOP");
  await servers.stop();
  assert.ok(pids.every(isGone));
});

Deno.test("`exited` resolves when a server dies by itself, and `start` brings it back", async () => {
  await using postgres = await startPostgres();
  Deno.kill(postgres.pid, "SIGKILL");
  assert.equal(await postgres.exited, 128 + 9);
  await postgres.start();
  assert.deepEqual(await query(postgres, "select 1 as one"), [{ one: 1 }]);
});

Deno.test("data in a given folder is kept for the next caller", async () => {
  const dataDir = await Deno.makeTempDir({ prefix: "kenri-given-" });
  await Deno.chmod(dataDir, 0o755);
  try {
    {
      await using servers = await startServers({ dataDir });
      await query(servers.postgres, "create table kept as select 1 as id");
      await redisCommand(servers.redis.url, "SET", "kept", 1);
    }
    await using servers = await startServers({ dataDir });
    assert.equal(await redisCommand(servers.redis.url, "GET", "kept"), "1");
    assert.deepEqual(await query(servers.postgres, "select id from kept"), [{ id: 1 }]);
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
});

Deno.test("a server that can't start reports its own error", async () => {
  await assert.rejects(startPostgres({ settings: { shared_buffers: "much" } }), /shared_buffers/);
  await assert.rejects(startNats({ settings: "jetstream: maybe" }), /nats\.conf/);
  await using first = await startNats();
  await assert.rejects(startNats({ port: first.port }), /address already in use/);
});

Deno.test({
  name: "a temporary folder that only root can enter is no hindrance",
  ignore: Deno.uid() !== 0,
  fn: async () => {
    const closed = await Deno.makeTempDir({ prefix: "kenri-closed-" });
    await Deno.chmod(closed, 0o700);
    const script = `
      const { startServers } = await import("${import.meta.resolve("./servers.ts")}");
      const { stop } = await startServers();
      await stop();
    `;
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", script],
      cwd: root,
      env: { TMPDIR: closed, KENRI_TEST_SERVERS_FOLDER: "" },
    }).output();
    assert.ok(success, new TextDecoder().decode(stderr));
    assert.deepEqual(await Array.fromAsync(Deno.readDir(closed)), []);
    await Deno.remove(closed, { recursive: true });
  },
});

async function query(postgres: PostgresServer, sql: string) {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
