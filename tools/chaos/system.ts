// What a chaos run starts besides NATS, Redis and the receivers: two replicas of each service, and the
// databases. All targets of faults follow from it, so a further service is one more entry.
import { migrationsOf } from "../servers/databases.ts";
import { runArguments } from "../services.ts";
import { type KenriService, type Ports, settingsOf } from "./replica_settings.ts";

export type LinkedServer = "database" | "nats" | "redis" | "sender" | "account";

export interface ChaosService {
  name: string;
  /** Whether clients reach its replicas over links that can be disturbed. */
  hasClients: boolean;
  /** What each of its replicas connects to, over a link that can be disturbed. */
  servers: LinkedServer[];
  /** The folder of its migrations, if it has a database. */
  migrations?: string;
  /** The arguments with which `deno` runs a replica. */
  arguments(read: (setting: string) => string | undefined): string[];
  settings(ports: Ports): Record<string, string>;
}

const kenriService = (
  name: KenriService,
  { servers, hasClients }: Pick<ChaosService, "servers" | "hasClients">,
): ChaosService => ({
  name,
  hasClients,
  servers,
  ...(servers.includes("database") ? { migrations: migrationsOf(name) } : {}),
  arguments: (read) => runArguments(name, read),
  settings: (ports) => settingsOf(name, ports),
});

export const kenri: ChaosService[] = [
  kenriService("entitlement", { servers: ["database", "nats"], hasClients: true }),
  kenriService("notification", { servers: ["database", "nats", "sender"], hasClients: true }),
  kenriService("sender", { servers: [], hasClients: false }),
  kenriService("account", { servers: ["database", "nats"], hasClients: true }),
  kenriService("matchmaking", { servers: ["redis", "nats"], hasClients: true }),
  kenriService("gateway", { servers: ["nats", "account"], hasClients: true }),
];
