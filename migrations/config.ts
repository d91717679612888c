import * as all from "@kenri/services.ts";
import { environmentName, type Service } from "@kenri/shared/process/program.ts";
import {
  environment,
  parseSettings,
  prefixed,
  unprefixed,
} from "@kenri/shared/process/settings.ts";
import { count } from "@kenri/shared/process/setting_kinds.ts";
import { databaseUrl } from "@kenri/shared/process/server_urls.ts";
import { tlsSettings, type TlsSource, tlsSource } from "@kenri/shared/postgres/tls.ts";
import { z } from "zod";
import { type WithDatabase, withDatabase } from "./program.ts";

// The owner connects to the same server as the service, so it uses the same TLS settings.
const ownSettings = ({ name }: WithDatabase) => ({
  "database.url": databaseUrl(),
  "migration.database.url": databaseUrl().optional().meta({
    description: "URL of the database's owner, for `migrate` and recovery only",
    shownDefault: `\`${name}.database.url\``,
  }),
  ...prefixed("database", tlsSettings),
});

type OwnSettings = z.output<z.ZodObject<ReturnType<typeof ownSettings>>>;

export function schemaOf(services: Record<string, Service>): z.ZodObject {
  const shapes = withDatabase(services).map((service) => {
    const ofOwner = Object.entries(service.database.ownerSettings ?? {})
      .map(([key, standard]) => [key, count().prefault(standard)]);
    return prefixed(service.name, { ...ownSettings(service), ...Object.fromEntries(ofOwner) });
  });
  return z.object(Object.assign({}, ...shapes));
}

export const schema: z.ZodObject = schemaOf(all);

// Not every service has to be deployed. Without any url all of them are named as missing.
function chosenOf(
  services: Record<string, Service>,
  read: typeof environment,
): Record<string, Service> {
  const isSet = ({ name }: Service) =>
    ["database.url", "migration.database.url"].some((key) =>
      read(environmentName(`${name}.${key}`))
    );
  const chosen = withDatabase(services).filter(isSet).map((service) => [service.name, service]);
  return chosen.length > 0 ? Object.fromEntries(chosen) : services;
}

export interface DatabaseUrls {
  service: string;
  ownerUrl: string;
  serviceUrl: string;
  ownerSettings?: Record<string, number>;
  tls: TlsSource;
}

export function readDatabaseUrls(
  read: typeof environment = environment,
  services: Record<string, Service> = all,
): DatabaseUrls[] {
  const chosen = chosenOf(services, read);
  const settings = parseSettings(schemaOf(chosen), read);
  return withDatabase(chosen).map(({ name, database }) => {
    const own = unprefixed<string, OwnSettings & Record<string, unknown>>(name, settings as never);
    const serviceUrl = own["database.url"];
    const ofOwner = Object.keys(database.ownerSettings ?? {}).map((key) => [key, own[key]]);
    return {
      service: name,
      ownerUrl: own["migration.database.url"] ?? serviceUrl,
      serviceUrl,
      tls: { ...tlsSource("database", own), setting: `${name}.database` },
      ...(database.ownerSettings ? { ownerSettings: Object.fromEntries(ofOwner) } : {}),
    };
  });
}
