import * as all from "@kenri/services.ts";
import { environmentName, type Program, type Service } from "@kenri/shared/process/program.ts";

export type WithDatabase = Service & Required<Pick<Service, "database">>;

/** The services that have a database, in the order in which these are migrated. */
export function withDatabase(services: Record<string, Service>): WithDatabase[] {
  return Object.values(services).filter((service): service is WithDatabase =>
    service.database !== undefined
  );
}

/** The folder of a service's SQL files, from the root of the project and beside the bundles. */
export function migrationsIn(service: string): string {
  return `${service}/migrations`;
}

export function migrateProgram(services: Record<string, Service>): Program {
  const found = withDatabase(services);
  const settingsOf = (service: WithDatabase) =>
    [
      ...["DATABASE_URL", "MIGRATION_DATABASE_URL"],
      ...["CA", "CERT", "KEY"].map((file) => `DATABASE_TLS_${file}`),
      ...Object.keys(service.database.ownerSettings ?? {}).map(environmentName),
    ].map((name) => `${environmentName(service.name)}_${name}`);
  return {
    name: "migrate",
    settings: found.flatMap(settingsOf).sort(),
    servers: found.map(({ name }) => environmentName(name)).map((
      prefix,
    ) => [`${prefix}_MIGRATION_DATABASE_URL`, `${prefix}_DATABASE_URL`]),
    tls: found.map((service) => `${environmentName(service.name)}_DATABASE`),
    folders: found.map(({ name }) => migrationsIn(name)),
  };
}

export const program: Program = migrateProgram(all);
