// A whole system: two replicas of each service, a PostgreSQL server for each database, one NATS,
// one Redis, receivers, and links between all of them that can be disturbed.
import { setTimeout as pause } from "node:timers/promises";
import { migrate } from "../../migrations/migrate.ts";
import { plantedPassword } from "../planted.ts";
import { freePort } from "../servers/free_port.ts";
import { type NatsServer, startNats } from "../servers/nats.ts";
import { type RedisServer, startRedis } from "../servers/redis.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import type { Server } from "../servers/server.ts";
import { type Disk, makeDisk } from "./disk.ts";
import { databaseOf, linkOf, replicasOf, targetsOf } from "./plan.ts";
import { Proxy } from "./proxy.ts";
import { Receivers } from "./receivers.ts";
import { Replica } from "./replica.ts";
import { databaseUrl, type Ports, serviceUser } from "./replica_settings.ts";
import type { ChaosService } from "./system.ts";

export interface OnDisk<Server> {
  server: Server;
  disk: Disk;
}

export interface Stack extends AsyncDisposable {
  replicas: Replica[];
  replica(name: string): Replica;
  servers: OnDisk<Server>[];
  database(name: string): OnDisk<PostgresServer>;
  nats: OnDisk<NatsServer>;
  redis: OnDisk<RedisServer>;
  links: Map<string, Proxy>;
  receivers: Receivers;
  /** The URLs at which clients reach replicas of the service. */
  clientUrls(service: string): string[];
  /** The URL of the service's database for its owner. */
  ownerUrl(service: string): string;
}

export async function startStack(services: ChaosService[], logFile: string): Promise<Stack> {
  await using starting = new AsyncDisposableStack();
  const databases = new Map<string, OnDisk<PostgresServer>>();
  for (const service of services) {
    const { name, migrations } = service;
    if (migrations === undefined) continue;
    databases.set(databaseOf(service), await startDatabase({ name, migrations }, starting));
  }
  const nats = await startBroker(starting);
  const redis = await startStore(starting);
  const receivers = starting.use(await Receivers.start());
  const httpPorts = new Map(services.flatMap(replicasOf).map((name) => [name, freePort()]));
  const links = new Map<string, Proxy>();
  for (const link of targetsOf(services).link) {
    const [from = "", to = ""] = link.split(" > ");
    const own = services.find((service) => replicasOf(service).includes(from));
    const end = to === "nats"
      ? nats.server.port
      : to === "redis"
      ? redis.server.port
      : own && to === "database"
      ? found(databases, databaseOf(own)).server.port
      : found(httpPorts, to);
    links.set(link, starting.use(new Proxy(freePort(), end)));
  }
  const portOf = (link: string) => found(links, link).port;
  const replicas = new Map<string, Replica>();
  for (const service of services) {
    for (const name of replicasOf(service)) {
      const ports: Ports = {
        http: found(httpPorts, name),
        to: (server) => portOf(linkOf(name, server)),
      };
      const replica = new Replica(name, service, ports, logFile);
      starting.defer(() => replica.end("SIGKILL"));
      replica.start();
      replicas.set(name, replica);
    }
  }
  await untilReady([...replicas.values()]);
  const parts = starting.move();
  return {
    replicas: [...replicas.values()],
    replica: (name) => found(replicas, name),
    servers: [...databases.values(), nats, redis],
    database: (name) => found(databases, name),
    nats,
    redis,
    links,
    receivers,
    clientUrls: (service) =>
      replicasOf({ name: service })
        .map((replica) => `http://127.0.0.1:${portOf(`clients > ${replica}`)}`),
    ownerUrl: (name) => databaseUrl(found(databases, databaseOf({ name })).server.port, name),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

function found<Value>(all: Map<string, Value>, name: string): Value {
  const value = all.get(name);
  if (value === undefined) throw new Error(`The system has no ${name}`);
  return value;
}

async function startDatabase(
  { name, migrations }: Required<Pick<ChaosService, "name" | "migrations">>,
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
    folder: migrations,
    ownerUrl: databaseUrl(server.port, name),
    serviceUrl: databaseUrl(server.port, name, serviceUser(name)),
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

async function startStore(starting: AsyncDisposableStack): Promise<OnDisk<RedisServer>> {
  const disk = starting.use(await makeDisk("redis"));
  const server = starting.use(
    await startRedis({
      dataDir: `${disk.path}/data`,
      password: plantedPassword,
      // With `everysec`, Redis may answer before it has written when the last fsync still runs.
      appendfsync: "always",
    }),
  );
  return { server, disk };
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
