// The whole system: two replicas of each service, a PostgreSQL server for each service, one NATS,
// and links between all of them that can be disturbed.
import { setTimeout as pause } from "node:timers/promises";
import { migrate } from "../../migrations/migrate.ts";
import { plantedPassword } from "../planted.ts";
import { freePort } from "../servers/free_port.ts";
import { type NatsServer, startNats } from "../servers/nats.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import type { ServiceName } from "../services.ts";
import { type Disk, makeDisk } from "./disk.ts";
import { type DatabaseName, links, type ReplicaName, replicas } from "./plan.ts";
import { Proxy } from "./proxy.ts";
import { Replica } from "./replica.ts";
import { databaseUrl, serviceUser, settingsOf } from "./replica_settings.ts";
import { migrationsOf } from "../servers/databases.ts";

export interface OnDisk<Server> {
  server: Server;
  disk: Disk;
}

interface Servers {
  databases: Record<DatabaseName, OnDisk<PostgresServer>>;
  nats: OnDisk<NatsServer>;
}

export interface Stack extends Servers, AsyncDisposable {
  replicas: Record<ReplicaName, Replica>;
  links: Map<string, Proxy>;
  /** The URLs at which clients reach the entitlement service. */
  clientUrls: string[];
  owners: Record<ServiceName, string>;
}

export async function startStack(logFile: string): Promise<Stack> {
  await using starting = new AsyncDisposableStack();
  const servers = {
    databases: {
      "entitlement database": await startDatabase("entitlement", starting),
      "notification database": await startDatabase("notification", starting),
    },
    nats: await startBroker(starting),
  };
  const httpPorts = Object.fromEntries(replicas.map((name) => [name, freePort()]));
  const proxies = new Map(links.map((link) => {
    const proxy = new Proxy(freePort(), endOf(link, servers, httpPorts));
    return [link, starting.use(proxy)];
  }));
  const portOf = (link: string) => proxies.get(link)?.port ?? 0;
  const started = replicas.map((name) => {
    const settings = settingsOf(serviceOf(name), {
      http: httpPorts[name] ?? 0,
      database: portOf(`${name} > database`),
      nats: portOf(`${name} > nats`),
    });
    const replica = new Replica(name, settings, logFile);
    starting.defer(() => replica.end("SIGKILL"));
    replica.start();
    return replica;
  });
  await untilReady(started);
  const { "entitlement database": ofChanges, "notification database": ofSends } = servers.databases;
  const parts = starting.move();
  return {
    ...servers,
    replicas: Object.fromEntries(started.map((one) => [one.name, one])) as Stack["replicas"],
    links: proxies,
    clientUrls: links.filter((link) => link.startsWith("clients"))
      .map((link) => `http://127.0.0.1:${portOf(link)}`),
    owners: {
      entitlement: databaseUrl(ofChanges.server.port, "entitlement"),
      notification: databaseUrl(ofSends.server.port, "notification"),
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

async function startDatabase(
  service: ServiceName,
  starting: AsyncDisposableStack,
): Promise<OnDisk<PostgresServer>> {
  const disk = starting.use(await makeDisk("postgres"));
  const server = starting.use(
    await startPostgres({
      dataDir: `${disk.path}/data`,
      password: plantedPassword,
      // The disk is memory.
      settings: { max_wal_size: "128MB", shared_buffers: "64MB" },
    }),
  );
  await migrate({
    folder: migrationsOf(service),
    ownerUrl: databaseUrl(server.port, service),
    serviceUrl: databaseUrl(server.port, service, serviceUser(service)),
    say: () => {},
  });
  return { server, disk };
}

async function startBroker(starting: AsyncDisposableStack): Promise<OnDisk<NatsServer>> {
  const disk = starting.use(await makeDisk("nats"));
  const server = starting.use(
    await startNats({ storeDir: `${disk.path}/store`, password: plantedPassword }),
  );
  return { server, disk };
}

/** The port to which the proxy of a link leads. */
function endOf(link: string, servers: Servers, httpPorts: Record<string, number>): number {
  const [from = "", to = ""] = link.split(" > ");
  if (to === "nats") return servers.nats.server.port;
  if (to === "database") return servers.databases[`${serviceOf(from)} database`].server.port;
  return httpPorts[to] ?? 0;
}

function serviceOf(replica: string): ServiceName {
  return replica.startsWith("entitlement") ? "entitlement" : "notification";
}

const readyWithinMs = 60_000;

async function untilReady(started: Replica[]): Promise<void> {
  const deadline = performance.now() + readyWithinMs;
  for (const replica of started) {
    while (!await replica.answers("/readyz")) {
      if (performance.now() > deadline) {
        throw new Error(`${replica.name} is not ready after ${readyWithinMs / 1_000} s`);
      }
      await pause(100);
    }
  }
}
