// What a chaos run starts besides NATS: two replicas of each service, and a database for each. All
// targets of faults follow from it, so a further service is one more entry.
import { migrationsOf } from "../servers/databases.ts";
import type { FlowService } from "../load/stage.ts";
import { runArguments } from "../services.ts";
import { type Ports, settingsOf } from "./replica_settings.ts";

export interface ChaosService {
  name: string;
  /** Whether clients reach its replicas over links that can be disturbed. */
  hasClients: boolean;
  /** The folder of its migrations. */
  migrations: string;
  /** The arguments with which `deno` runs a replica. */
  arguments(read: (setting: string) => string | undefined): string[];
  settings(ports: Ports): Record<string, string>;
}

const kenriService = (name: FlowService, hasClients: boolean): ChaosService => ({
  name,
  hasClients,
  migrations: migrationsOf(name),
  arguments: (read) => runArguments(name, read),
  settings: (ports) => settingsOf(name, ports),
});

export const kenri: ChaosService[] = [
  kenriService("entitlement", true),
  kenriService("notification", false),
];
