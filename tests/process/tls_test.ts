// Both services over TLS, to servers with certificates of a private authority.
import assert from "node:assert/strict";
import { connectNats } from "../../shared/nats/connection.ts";
import { type PostgresServer, startPostgres } from "../../tools/servers/postgres.ts";
import { type NatsServer, startNats } from "../../tools/servers/nats.ts";
import { assertError, call, grant } from "../support/api.ts";
import { type Certificate, newAuthority } from "./certificates.ts";
import { ask } from "../support/entitlement.ts";
import { runShell } from "../operators/runbook.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { startTlsNats, startTlsPostgres } from "./tls_servers.ts";
import { until } from "../../tools/servers/wait.ts";
import { countRows } from "../../tools/servers/asking.ts";

const authority = newAuthority();
const hosts = ["localhost", "127.0.0.1"];
const good = authority.issue({ name: "server", hosts });

const names: Settings = {
  ENTITLEMENT_NATS_STREAM: "events",
  ENTITLEMENT_NATS_SUBJECT: "kenri.events",
  NOTIFICATION_NATS_STREAM: "events",
  NOTIFICATION_NATS_SUBJECT: "kenri.events",
  NOTIFICATION_NATS_DURABLE: "notifications",
};

interface TwoServers {
  postgres: PostgresServer;
  nats: NatsServer;
}

// `host` is an address or a name; the certificate must match it.
function settingsOf({ postgres, nats }: TwoServers, host = "localhost"): Settings {
  const urls = ["entitlement", "notification"].map((service) => ({
    [`${service.toUpperCase()}_DATABASE_URL`]: urlOf(service, `kenri_${service}`),
    [`${service.toUpperCase()}_MIGRATION_DATABASE_URL`]: urlOf(service, "postgres"),
    [`${service.toUpperCase()}_DATABASE_TLS_CA`]: authority.cert,
  }));
  function urlOf(database: string, user: string): string {
    const url = postgres.urlOf({ database, user }).replace("127.0.0.1", host);
    return `${url}?sslmode=verify-full`;
  }
  return Object.assign({
    ...names,
    NATS_URL: tlsUrlOf(nats, host),
    NATS_TLS_CA: authority.cert,
  }, ...urls);
}

const tlsUrlOf = ({ url }: NatsServer, host: string) =>
  url.replace("nats:", "tls:").replace("127.0.0.1", host);

const isReady = async ({ url }: ServiceProcess) => (await call(`${url}/readyz`)).status === 200;
const says = ({ log }: ServiceProcess, what: RegExp) => what.test(JSON.stringify(log));

async function startServers(certificate: Certificate, clientAuthority?: string) {
  const options = { certificate, ...(clientAuthority ? { clientAuthority } : {}) };
  const postgres = await startTlsPostgres(options);
  const nats = await startTlsNats(options);
  return {
    postgres,
    nats,
    ports: { postgres: postgres.server, nats: nats.server },
    databaseUrl: (database: string) => postgres.server.urlOf({ database }),
    [Symbol.asyncDispose]: async () => {
      await nats[Symbol.asyncDispose]();
      await postgres[Symbol.asyncDispose]();
    },
  };
}

function sentCount(databaseUrl: string): Promise<number> {
  return countRows(databaseUrl, "notifications where status = 'SENT'");
}

for (const host of hosts) {
  Deno.test(`a change is encrypted all the way, to servers at ${host}`, async () => {
    await using servers = await startServers(good);
    const settings = settingsOf(servers.ports, host);
    await runShell("deno task migrate", settings);
    await using entitlement = await startService("entitlement", settings);
    await using notification = await startService("notification", settings);
    assert.equal((await grant(entitlement.url)).status, 200);
    await until(
      "it is sent",
      async () => await sentCount(servers.databaseUrl("notification")) === 1,
    );
    assert.ok(await isReady(entitlement) && await isReady(notification));
    const sessions = await ask<{ encrypted: boolean }>(
      servers.databaseUrl("postgres"),
      `select distinct ssl as encrypted from pg_stat_ssl
       join pg_stat_activity using (pid) where application_name in ('entitlement', 'notification')`,
    );
    assert.deepEqual(sessions, [{ encrypted: true }]);
    await entitlement.stop();
    assert.match(await runShell("deno task recover", settings), /0 changes were recovered/);
    assert.match(await runShell("deno task redeliver", settings), /1 events are delivered again/);
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
  "of an unknown authority": [
    newAuthority("Nobody in particular").issue({ name: "server", hosts }),
    unverified,
  ],
  "of somebody who took the authority's name": [
    newAuthority().issue({ name: "server", hosts }),
    unverified,
  ],
};

for (const [what, [certificate, reason]] of Object.entries(distrusted)) {
  Deno.test(`a certificate ${what} is refused and named, until it is replaced`, async () => {
    await using servers = await startServers(good);
    const settings = settingsOf(servers.ports);
    await runShell("deno task migrate", settings);
    for (const { present, server } of [servers.postgres, servers.nats]) {
      await server.stop();
      await present(certificate);
      await server.start();
    }
    await using entitlement = await startService("entitlement", settings);
    await using notification = await startService("notification", settings);
    for (const service of [entitlement, notification]) {
      const said = new RegExp(`NATS can't be reached[^"]*${reason.source}`);
      await until(`NATS: ${what}`, () => says(service, said));
      const { json, status } = await call(`${service.url}/readyz`);
      assert.equal(status, 503);
      assert.match(json.message, /the database can't be reached.*NATS can't be reached/);
    }
    await until(
      "the database",
      () => says(notification, new RegExp(`its table[^"]*${reason.source}`)),
    );
    assertError(await grant(entitlement.url), 503, "SERVICE_UNAVAILABLE");
    assert.match(await runShell("deno task migrate", settings, 1), reason);
    assert.match(await runShell("deno task redeliver", settings, 1), reason);

    for (const { present, server } of [servers.postgres, servers.nats]) {
      await server.stop();
      await present(authority.issue({ name: "server", hosts }));
      await server.start();
    }
    for (const service of [entitlement, notification]) await until("ready", () => isReady(service));
    assert.equal((await grant(entitlement.url)).status, 200);
    await until(
      "it is sent",
      async () => await sentCount(servers.databaseUrl("notification")) === 1,
    );
  });
}

Deno.test("servers without TLS are refused, and nothing is sent to them", async () => {
  await using postgres = await startPostgres();
  await using nats = await startNats();
  const settings = settingsOf({ postgres, nats });
  const refused = /The server does not support SSL connections/;
  assert.match(await runShell("deno task migrate", settings, 1), refused);
  await using notification = await startService("notification", settings);
  await until("NATS", () => says(notification, /NATS can't be reached.*the server offers no TLS/));
  await until("the database", () => says(notification, refused));
  assert.equal(await isReady(notification), false);
});

Deno.test("servers that require a client certificate get ours, and refuse a client without one", async () => {
  await using servers = await startServers(good, authority.cert);
  await using folder = await temporaryFolder();
  const settings = settingsOf(servers.ports);
  for (const [service, setting] of [["entitlement", "DATABASE"], ["notification", "DATABASE"]]) {
    const { cert, key } = authority.issue({ name: `kenri_${service}` });
    const prefix = `${service?.toUpperCase()}_${setting}_TLS`;
    settings[`${prefix}_CERT`] = await folder.file(`${service}.crt`, cert);
    settings[`${prefix}_KEY`] = await folder.file(`${service}.key`, key);
    settings[`${prefix}_CA`] = await folder.file("ca.crt", authority.cert);
  }
  const ours = authority.issue({ name: "kenri" });
  Object.assign(settings, { NATS_TLS_CERT: ours.cert, NATS_TLS_KEY: ours.key });
  await runShell("deno task migrate", settings);
  await using entitlement = await startService("entitlement", settings);
  await until("it is ready", () => isReady(entitlement));
  assert.equal((await grant(entitlement.url)).status, 200);

  const without = Object.fromEntries(
    Object.entries(settings).filter(([name]) => !/_(CERT|KEY)$/.test(name)),
  );
  await using untrusting = await startService("notification", without);
  await until("NATS", () => says(untrusting, /NATS can't be reached/));
  await until("the database", () => says(untrusting, /can't use its table: .*certificate/));
  assert.equal(await isReady(untrusting), false);
});

Deno.test("each of several servers is verified by its own name", async () => {
  await using other = await startTlsNats({
    certificate: authority.issue({ name: "server", hosts: ["127.0.0.1"] }),
  });
  await using local = await startTlsNats({
    certificate: authority.issue({ name: "server", hosts: ["localhost"] }),
  });
  const urls = (one: string, two: string) =>
    `${tlsUrlOf(other.server, one)},${tlsUrlOf(local.server, two)}`;
  const tls = { setting: "nats", ca: authority.cert };
  const options = { name: "test" };
  const servers = new Set<string>();
  while (servers.size < 2) {
    const connection = await connectNats({ urls: urls("127.0.0.1", "localhost"), tls }, options);
    servers.add(connection.getServer());
    await connection.close();
  }
  const wrong = { urls: urls("localhost", "127.0.0.1"), tls };
  await assert.rejects(connectNats(wrong, options), { code: "ERR_TLS_CERT_ALTNAME_INVALID" });
});

async function temporaryFolder() {
  const path = await Deno.makeTempDir({ prefix: "kenri-tls-" });
  return {
    file: async (name: string, text: string) => {
      await Deno.writeTextFile(`${path}/${name}`, text);
      return `${path}/${name}`;
    },
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}
