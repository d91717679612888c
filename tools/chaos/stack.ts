// The whole system: two replicas of each service, a PostgreSQL for each of them, one NATS, and
// between all of them ways that can be disturbed.
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { migrate } from "../../migrations/migrate.ts";
import { freePort } from "../servers/free_port.ts";
import { type NatsServer, startNats } from "../servers/nats.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { failingUser } from "./clients.ts";
import { type Disk, makeDisk } from "./disk.ts";
import { type DatabaseName, databases, links, type ReplicaName, replicas } from "./plan.ts";
import { Proxy } from "./proxy.ts";
import { Replica } from "./replica.ts";

export interface OnDisk<Server> {
  server: Server;
  disk: Disk;
}

export interface Stack extends AsyncDisposable {
  databases: Record<DatabaseName, OnDisk<PostgresServer>>;
  nats: OnDisk<NatsServer>;
  replicas: Record<ReplicaName, Replica>;
  links: Map<string, Proxy>;
  /** Where clients find the entitlement service. */
  clientUrls: string[];
  owners: { entitlement: string; notification: string };
}

export const stream = "entitlement-events";
export const subject = "entitlement.events";
export const durable = "notification-entitlement-consumer";

export async function startStack(logFile: string): Promise<Stack> {
  await using starting = new AsyncDisposableStack();
  const made = { databases: {} as Stack["databases"], replicas: {} as Stack["replicas"] };
  for (const name of databases) {
    const disk = starting.use(await makeDisk("postgres"));
    const server = starting.use(
      await startPostgres({
        dataDir: `${disk.path}/data`,
        settings: { max_wal_size: "128MB", shared_buffers: "64MB" },
      }),
    );
    made.databases[name] = { server, disk };
  }
  const disk = starting.use(await makeDisk("nats"));
  const server = starting.use(await startNats({ storeDir: `${disk.path}/store` }));
  const nats = { server, disk };
  const owners = {
    entitlement: urlOf(made.databases["entitlement database"].server.port, "entitlement"),
    notification: urlOf(made.databases["notification database"].server.port, "notification"),
  };
  for (const service of ["entitlement", "notification"] as const) {
    await migrate({
      folder: fileURLToPath(new URL(`../../migrations/${service}`, import.meta.url)),
      ownerUrl: owners[service],
      serviceUrl: owners[service].replace("postgres@", `${service}:chaos@`),
      say: () => {},
    });
  }
  const httpPorts = Object.fromEntries(replicas.map((name) => [name, freePort()]));
  const serverPort = (link: string): number => {
    const [from = "", to = ""] = link.split(" > ");
    if (to === "nats") return server.port;
    if (to !== "database") return httpPorts[to] ?? 0;
    return made.databases[`${serviceOf(from)} database`].server.port;
  };
  const proxies = new Map(links.map((link) => {
    const port = serverPort(link);
    return [link, starting.use(new Proxy(freePort(), () => port))];
  }));
  for (const name of replicas) {
    const ports = {
      http: httpPorts[name] ?? 0,
      database: proxies.get(`${name} > database`)?.port ?? 0,
      nats: proxies.get(`${name} > nats`)?.port ?? 0,
    };
    const replica = new Replica(name, settingsOf(serviceOf(name), ports), logFile);
    made.replicas[name] = replica;
    starting.defer(() => replica.end("SIGKILL"));
    replica.start();
  }
  await untilReady(Object.values(made.replicas));
  const clientUrls = links.filter((link) => link.startsWith("clients"))
    .map((link) => `http://127.0.0.1:${proxies.get(link)?.port}`);
  const parts = starting.move();
  return {
    ...{ ...made, nats, owners, clientUrls, links: proxies },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const readyWithinMs = 60_000;

async function untilReady(replicas: Replica[]): Promise<void> {
  const deadline = performance.now() + readyWithinMs;
  for (const replica of replicas) {
    while (!await replica.answers("/readyz")) {
      if (performance.now() > deadline) throw new Error(`${replica.name} does not get ready`);
      await pause(100);
    }
  }
}

function serviceOf(replica: string): "entitlement" | "notification" {
  return replica.startsWith("entitlement") ? "entitlement" : "notification";
}

function urlOf(port: number, database: string): string {
  return `postgres://postgres@127.0.0.1:${port}/${database}`;
}

interface Ports {
  http: number;
  database: number;
  nats: number;
}

/** Leases and waits are short, so that much can happen in little time. */
function settingsOf(
  service: "entitlement" | "notification",
  ports: Ports,
): Record<string, string> {
  const database = urlOf(ports.database, service).replace("postgres@", `${service}:chaos@`);
  const common = { NATS_URL: `nats://127.0.0.1:${ports.nats}`, SHUTDOWN_GRACE: "5s" };
  if (service === "entitlement") {
    return {
      ...common,
      ENTITLEMENT_DATABASE_URL: database,
      ENTITLEMENT_HTTP_PORT: `${ports.http}`,
      ENTITLEMENT_NATS_STREAM: stream,
      ENTITLEMENT_NATS_SUBJECT: subject,
      ENTITLEMENT_OUTBOX_LEASE: "3s",
      ENTITLEMENT_OUTBOX_POLL_INTERVAL: "200ms",
    };
  }
  return {
    ...common,
    NOTIFICATION_DATABASE_URL: database,
    NOTIFICATION_HTTP_PORT: `${ports.http}`,
    NOTIFICATION_NATS_STREAM: stream,
    NOTIFICATION_NATS_SUBJECT: subject,
    NOTIFICATION_NATS_DURABLE: durable,
    NOTIFICATION_NATS_ACK_WAIT: "2s",
    NOTIFICATION_DELIVERY_LEASE: "3s",
    NOTIFICATION_DELIVERY_POLL_INTERVAL: "200ms",
    // Ten sends to a user whose sends fail shall take seconds.
    NOTIFICATION_DELIVERY_BACKOFF_BASE: "50ms",
    NOTIFICATION_DELIVERY_BACKOFF_MIN: "50ms",
    NOTIFICATION_DELIVERY_BACKOFF_MAX: "400ms",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED: "true",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: failingUser,
    // No outage is that long, so the order of sends must hold through all of them.
    NOTIFICATION_DELIVERY_PREDECESSOR_WAIT: "1h",
  };
}
