// Every user of the machine can ask for the servers that the tools start: nobody gets in
// without the password, and nobody else can read the password.
import assert from "node:assert/strict";
import pg from "pg";
import { connectTo } from "./nats_client.ts";
import { startNatsCluster } from "./nats_cluster.ts";
import { runAs } from "./other_user.ts";
import { startPostgres } from "./postgres.ts";
import { redisCommand } from "./redis_client.ts";
import { startServers } from "./servers.ts";

const wrong = "0".repeat(48);

Deno.test("PostgreSQL, NATS and Redis refuse a missing or wrong password", async () => {
  await using servers = await startServers();
  await using other = await startServers();
  const { postgres, nats, redis } = servers;
  assert.equal(await logIn(postgres.url), "postgres");
  for (const password of ["", wrong, new URL(other.postgres.url).password]) {
    const url = postgres.urlOf({ database: "postgres", password });
    await assert.rejects(logIn(url), /password|SASL|SCRAM/);
  }
  await (await connectTo(nats.url)).close();
  for (const credentials of [{}, { user: "kenri", pass: wrong }]) {
    assert.match(await connectAs(nats.port, credentials), /Authorization/);
  }
  assert.equal(await redisCommand(redis.url, "PING"), "PONG");
  for (const password of ["", wrong, new URL(other.redis.url).password]) {
    const url = new URL(redis.url);
    url.password = password;
    await assert.rejects(redisCommand(url.href, "PING"), /NOAUTH|WRONGPASS/);
  }
});

Deno.test("a NATS cluster refuses nodes without its password", async () => {
  await using cluster = await startNatsCluster();
  const [url = ""] = cluster.url.split(",");
  for (const port of [Number(new URL(url).port), cluster.routePorts[0] ?? 0]) {
    assert.match(await connectAs(port, { name: "stranger" }), /Authorization/);
  }
});

Deno.test({
  name: "no password is among the arguments of a process or in the log of a server",
  ignore: Deno.build.os !== "linux",
  fn: noPasswordIsShown,
});

async function noPasswordIsShown(): Promise<void> {
  await using servers = await startServers();
  const { postgres, nats, redis } = servers;
  for (const { url, pid } of [postgres, nats, redis]) {
    const { password } = new URL(url);
    const { stdout } = await runAs(undefined, "ps", ["-eww", "-o", "args"]);
    assert.match(stdout, /postgres -D/); // the list does have the arguments
    assert.ok(!stdout.includes(password));
    const log = await Deno.readTextFile(`/proc/${pid}/fd/1`);
    assert.ok(log.length > 0 && !log.includes(password));
  }
}

Deno.test("data that is kept keeps its password, in a file that no other user can read", async () => {
  await using folder = await dataFolder();
  const passwords = new Set<string>();
  for (let starts = 0; starts < 2; starts++) {
    await using postgres = await startPostgres({ dataDir: folder.postgres });
    passwords.add(new URL(postgres.url).password);
    assert.equal(await logIn(postgres.url), "postgres");
  }
  const [password] = passwords;
  assert.deepEqual([passwords.size, await Deno.readTextFile(folder.file)], [1, password]);
  const { mode } = await Deno.stat(folder.file);
  assert.equal((mode ?? 0) & 0o777, 0o600);
});

Deno.test("data of an earlier version, open to every local user, gets a password", async () => {
  await using folder = await dataFolder();
  {
    await using postgres = await startPostgres({ dataDir: folder.postgres });
    await logIn(postgres.url, "create table kept as select '7' as answer");
    await logIn(postgres.url, "create role service login");
    await logIn(postgres.url, "alter role postgres password null");
  }
  await Deno.writeTextFile(`${folder.postgres}/pg_hba.conf`, "host all all 127.0.0.1/32 trust\n");
  await Deno.remove(folder.file);
  await using postgres = await startPostgres({ dataDir: folder.postgres });
  const open = postgres.urlOf({ database: "postgres", password: "" });
  await assert.rejects(logIn(open), /password|SASL/);
  assert.equal(await logIn(postgres.url, "select answer from kept"), "7");
  assert.equal(await logIn(postgres.urlOf({ database: "postgres", user: "service" })), "service");
});

async function dataFolder() {
  const path = await Deno.makeTempDir({ prefix: "kenri-password-" });
  await Deno.chmod(path, 0o755);
  const postgres = `${path}/postgres`;
  const remove = () => Deno.remove(path, { recursive: true });
  return { postgres, file: `${postgres}/kenri-password`, [Symbol.asyncDispose]: remove };
}

/** The first value that the statement returns. */
async function logIn(url: string, sql = "select current_user as answer"): Promise<unknown> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {}); // the server ends the connection after its refusal
  try {
    await client.connect();
    return (await client.query(sql)).rows[0]?.answer;
  } finally {
    await client.end();
  }
}

/** All that NATS answers until it ends the connection. The client library can't be used here: Deno
 * 2.9.6 reports the reset of a connection that it has abandoned as an uncaught error. */
async function connectAs(port: number, credentials: Record<string, string>): Promise<string> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const connect = JSON.stringify({ verbose: false, ...credentials });
  await connection.write(new TextEncoder().encode(`CONNECT ${connect}\r\nPING\r\n`));
  let answer = "";
  try {
    for await (const bytes of connection.readable) answer += new TextDecoder().decode(bytes);
  } catch { /* The connection was reset. */ }
  return answer;
}
