// Matchmaking over TLS, to a Redis with certificates of a private authority.
import assert from "node:assert/strict";
import { plantedPassword } from "../../tools/planted.ts";
import { redisCommand } from "../../tools/servers/redis_client.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { assertError, call } from "../support/api.ts";
import {
  join,
  joined,
  type Matchmaking,
  startMatchmaking,
  ticket,
} from "../support/matchmaking.ts";
import { freshStreamNames, natsUrl } from "../support/streams.ts";
import { type Certificate, newAuthority } from "./certificates.ts";
import { startTlsRedis, type TlsRedis } from "./tls_servers.ts";

const authority = newAuthority();
const hosts = ["localhost", "127.0.0.1"];
const good = authority.issue({ name: "server", hosts });
const trusted: Settings = { REDIS_TLS_CA: authority.cert };

const start = (redis: TlsRedis, host: string, more: Settings = trusted): Promise<Matchmaking> =>
  startMatchmaking({ REDIS_URL: redis.urlAt(host), ...more });

// It never becomes ready.
function startRefused(redis: TlsRedis, more: Settings = trusted): Promise<ServiceProcess> {
  const { stream, subject } = freshStreamNames();
  return startService("matchmaking", {
    ...more,
    MATCHMAKING_NATS_STREAM: stream,
    MATCHMAKING_NATS_SUBJECT: subject,
    NATS_URL: natsUrl,
    REDIS_URL: redis.urlAt("localhost"),
  });
}

const says = ({ log }: ServiceProcess, what: RegExp) => what.test(JSON.stringify(log));

async function assertMatches(service: { url: string }) {
  const ann = await joined(service, "ann");
  await joined(service, "bob");
  assert.equal((await ticket(service, "ann", ann, "?wait=10s")).json.status, "MATCHED");
}

for (const host of hosts) {
  Deno.test(`all connections to Redis are encrypted, to a server at ${host}`, async () => {
    await using redis = await startTlsRedis({ certificate: good });
    for (const durable of ["false", "true"]) {
      await using service = await start(redis, host, { ...trusted, MATCHMAKING_DURABLE: durable });
      await assertMatches(service);
      const clients = `${await redisCommand(redis.server.url, "CLIENT", "LIST")}`.split("\n");
      const ours = clients.filter((line) => line.includes("name=kenri-matchmaking"));
      assert.equal(ours.length, durable === "true" ? 2 : 1);
      const encrypted = new RegExp(` laddr=\\S+:${new URL(redis.urlAt(host)).port} `);
      for (const line of ours) assert.match(line, encrypted);
    }
  });
}

const unverified =
  /the server's certificate has expired, or was signed by no authority that is trusted/;
const distrusted: Record<string, [Certificate, RegExp]> = {
  "for another host": [
    authority.issue({ name: "server", hosts: ["other.example", "127.0.0.2"] }),
    /does not match certificate's altnames/,
  ],
  "that has expired": [authority.issue({ name: "server", hosts, days: -1 }), unverified],
  "of somebody who took the authority's name": [
    newAuthority().issue({ name: "server", hosts }),
    unverified,
  ],
};

for (const [what, [certificate, reason]] of Object.entries(distrusted)) {
  Deno.test(`a certificate of Redis ${what} is refused and named, until it is replaced`, async () => {
    await using redis = await startTlsRedis({ certificate });
    await using service = await startRefused(redis);
    await until(
      "it is named",
      () => says(service, new RegExp(`Redis can't be reached[^"]*${reason.source}`)),
    );
    const { json, status } = await call(`${service.url}/readyz`);
    assert.equal(status, 503);
    assert.match(json.message, /Redis can't be reached/);
    assertError(await join(service, "ann"), 503, "MATCHMAKING_UNAVAILABLE");
    await redis.server.stop();
    await redis.present(good);
    await redis.server.start();
    await until("it is ready", async () => (await call(`${service.url}/readyz`)).status === 200);
    await assertMatches(service);
  });
}

Deno.test("a server without TLS is refused, and gets no password", async () => {
  await using redis = await startTlsRedis({ certificate: good });
  const withoutTls = { ...redis, urlAt: () => redis.server.url.replace("redis:", "rediss:") };
  await using service = await startRefused(withoutTls);
  await until("it is refused", () => says(service, /Redis can't be reached/));
  assert.equal((await call(`${service.url}/readyz`)).status, 503);

  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const url = `rediss://:${plantedPassword}@127.0.0.1:${listener.addr.port}`;
  await using _other = await startRefused({ ...redis, urlAt: () => url });
  using connection = await listener.accept();
  const bytes = new Uint8Array(4_096);
  const sent = bytes.subarray(0, await connection.read(bytes) ?? 0);
  assert.equal(sent[0], 22, "the first message of TLS");
  assert.ok(!new TextDecoder("latin1").decode(sent).includes(plantedPassword));
});

Deno.test("a Redis that requires a client certificate gets ours, and refuses a client without one", async () => {
  await using redis = await startTlsRedis({ certificate: good, clientAuthority: authority.cert });
  const { cert, key } = authority.issue({ name: "matchmaking" });
  const ours = { ...trusted, REDIS_TLS_CERT: cert, REDIS_TLS_KEY: key };
  {
    await using service = await start(redis, "localhost", ours);
    await assertMatches(service);
  }
  await using without = await startRefused(redis);
  await until("it is refused", () => says(without, /Redis can't be reached/));
  assert.equal((await call(`${without.url}/readyz`)).status, 503);
});
