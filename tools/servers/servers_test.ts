import assert from "node:assert/strict";
import pg from "pg";
import { startNats } from "./nats.ts";
import { connectTo } from "./nats_client.ts";
import { type PostgresServer, startPostgres } from "./postgres.ts";
import { startServers } from "./servers.ts";

Deno.test("both servers are ready and answer", async () => {
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

  for (const { address, url } of [servers.postgres, servers.nats]) {
    assert.equal(lines.filter((line) => line.startsWith(`${address} is ready after`)).length, 1);
    const { password } = new URL(url);
    assert.ok(password.length > 40 && !lines.join("\n").includes(password));
  }
});

Deno.test("two of a kind at once get ports and data of their own", async () => {
  await using first = await startServers();
  await using second = await startServers();
  const ports = [first, second].flatMap(({ postgres, nats }) => [postgres.port, nats.port]);
  assert.equal(new Set(ports).size, 4);
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

Deno.test("a stream message survives kill and start, and goes with wipe", async () => {
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

Deno.test("kill ends a backend that is too busy to notice", async () => {
  await using postgres = await startPostgres();
  const backend = await occupyBackend(postgres);
  await postgres.kill();
  assert.ok(isGone(postgres.pid));
  await until(() => isGone(backend));
  await postgres.start();
});

Deno.test("a server that a test stopped with SIGSTOP is ended like any other", async () => {
  const servers = await startServers();
  const pids = [servers.postgres.pid, servers.nats.pid];
  for (const pid of pids) Deno.kill(pid, "SIGSTOP");
  await servers.stop();
  assert.ok(pids.every(isGone));
});

Deno.test("exited tells when a server dies by itself, and start brings it back", async () => {
  await using postgres = await startPostgres();
  Deno.kill(postgres.pid, "SIGKILL");
  assert.equal(await postgres.exited, 128 + 9);
  await postgres.start();
  assert.deepEqual(await query(postgres, "select 1 as one"), [{ one: 1 }]);
});

Deno.test("data in a given folder is there again for the next caller", async () => {
  const dataDir = await Deno.makeTempDir({ prefix: "kenri-given-" });
  await Deno.chmod(dataDir, 0o755);
  try {
    {
      await using servers = await startServers({ dataDir });
      await query(servers.postgres, "create table kept as select 1 as id");
    }
    await using servers = await startServers({ dataDir });
    assert.deepEqual(await query(servers.postgres, "select id from kept"), [{ id: 1 }]);
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
});

Deno.test("a server that can't start says why in its own words", async () => {
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
      cwd: new URL("../..", import.meta.url),
      env: { TMPDIR: closed, KENRI_TEST_SERVERS_FOLDER: "" },
    }).output();
    assert.ok(success, new TextDecoder().decode(stderr));
    assert.deepEqual(await Array.fromAsync(Deno.readDir(closed)), []);
    await Deno.remove(closed, { recursive: true });
  },
});

const ENDINGS: [string, (pid: number) => Promise<void> | void][] = [
  ["kill -9 of the caller", (pid) => Deno.kill(pid, "SIGKILL")],
  ["SIGTERM to the caller", (pid) => Deno.kill(pid, "SIGTERM")],
  // Ctrl-C goes to the whole process group of the terminal.
  ["Ctrl-C", async (pid) => {
    await new Deno.Command("sh", { args: ["-c", `kill -s INT -- -${pid}`] }).output();
  }],
  ["SIGHUP to the caller", (pid) => Deno.kill(pid, "SIGHUP")],
];

for (const [name, end] of ENDINGS) {
  Deno.test(`nothing is left after ${name}`, async () => {
    await using caller = await startCaller(
      "await new Promise(() => setInterval(() => {}, 1_000));",
    );
    await end(caller.pid);
    await caller.assertNothingLeft();
  });
}

for (const [name, code] of [["a normal exit", ""], ["a crash", "throw new Error('crash');"]]) {
  Deno.test(`nothing is left after ${name} of the caller that never stopped them`, async () => {
    await using caller = await startCaller(code ?? "");
    await caller.assertNothingLeft();
  });
}

/** Another process with both servers and a busy backend, which then does as the code says. */
async function startCaller(code: string) {
  const module = import.meta.resolve("./servers.ts");
  const script = `
    const { startServers } = await import("${module}");
    const { occupyBackend } = await import("${import.meta.url}");
    const { postgres, nats } = await startServers();
    const pids = [postgres.pid, nats.pid, await occupyBackend(postgres)];
    console.log(JSON.stringify({ pids, folders: [postgres.dataDir, nats.storeDir] }));
    ${code}
    Deno.exit();
  `;
  const caller = new Deno.Command(Deno.execPath(), {
    args: ["eval", script],
    cwd: new URL("../..", import.meta.url),
    stdout: "piped",
    stderr: "null",
    detached: true,
  }).spawn();
  const output = await readLine(caller.stdout);
  const { pids, folders }: { pids: number[]; folders: string[] } = JSON.parse(output);

  async function assertNothingLeft(): Promise<void> {
    await caller.status;
    await until(() => pids.every(isGone));
    await until(() => Promise.all(folders.map(isRemoved)).then((all) => all.every(Boolean)));
  }

  return {
    pid: caller.pid,
    assertNothingLeft,
    async [Symbol.asyncDispose]() {
      try {
        caller.kill("SIGKILL");
      } catch { /* Already gone, as it should be. */ }
      await caller.status;
    },
  };
}

/** Its pid. It looks at no socket and no latch until the loop ends, which it never does. */
export async function occupyBackend(postgres: PostgresServer): Promise<number> {
  const client = new pg.Client({ connectionString: postgres.url });
  client.on("error", () => {});
  await client.connect();
  const { rows } = await client.query("select pg_backend_pid() as pid");
  client.query("do 'begin loop end loop; end'").catch(() => client.end().catch(() => {}));
  return rows[0].pid;
}

async function query(postgres: PostgresServer, sql: string) {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** SIGCONT does nothing to a process that runs, but fails if there is none. */
function isGone(pid: number): boolean {
  try {
    Deno.kill(pid, "SIGCONT");
    return false;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return true;
    throw error;
  }
}

function isRemoved(path: string): Promise<boolean> {
  return Deno.lstat(path).then(() => false, () => true);
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!await condition()) {
    assert.ok(Date.now() < deadline, "The condition did not come true within 10 s");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function readLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.includes("\n")) break;
  }
  return text;
}
