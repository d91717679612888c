// Migrated databases, as a service finds them.
import { migrate } from "../../migrations/migrate.ts";
import { migrationsIn } from "../../migrations/program.ts";
import { root } from "../root.ts";
import type { ServiceName } from "../services.ts";
import type { PostgresServer } from "./postgres.ts";

export function migrationsOf(service: ServiceName): string {
  return root + migrationsIn(service);
}

export async function makeDatabase(
  server: PostgresServer,
  service: ServiceName,
  name: string = service,
): Promise<{ ownerUrl: string; serviceUrl: string }> {
  const ownerUrl = server.urlOf({ database: name });
  const serviceUrl = server.urlOf({ database: name, user: `kenri_${service}` });
  await migrate({ folder: migrationsOf(service), ownerUrl, serviceUrl, say: () => {} });
  return { ownerUrl, serviceUrl };
}
