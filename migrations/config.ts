import * as all from "@kenri/services.ts";
import type { Service } from "@kenri/shared/process/program.ts";
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
  "database.url": databaseUrl().optional(),
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
  const prefixes = withDatabase(services).map(({ name }) => name);
  return z.object(Object.assign({}, ...shapes)).check(...urlsAreThere(prefixes));
}

// A service that is not used has no database. But its owner alone says that there is one, and a command
// without any url was started without its settings.
function urlsAreThere(services: string[]): z.core.$ZodCheck<Record<string, unknown>>[] {
  const urlOf = (service: string) => `${service}.database.url`;
  return services.map((service) =>
    z.refine<Record<string, unknown>>(
      (values) =>
        values[urlOf(service)] !== undefined ||
        values[`${service}.migration.database.url`] === undefined &&
          services.some((other) => values[urlOf(other)] !== undefined),
      { path: [urlOf(service)], message: "is required", when: () => true },
    )
  );
}

export const schema: z.ZodObject = schemaOf(all);

export interface DatabaseUrls {
  service: string;
  ownerUrl: string;
  serviceUrl: string;
  ownerSettings?: Record<string, number>;
  tls: TlsSource;
}

/** The databases whose url is set. */
export function readDatabaseUrls(
  read: typeof environment = environment,
  services: Record<string, Service> = all,
): DatabaseUrls[] {
  const settings = parseSettings(schemaOf(services), read);
  return withDatabase(services).flatMap(({ name, database }) => {
    const own = unprefixed<string, OwnSettings & Record<string, unknown>>(name, settings as never);
    const serviceUrl = own["database.url"];
    if (serviceUrl === undefined) return [];
    const ofOwner = Object.keys(database.ownerSettings ?? {}).map((key) => [key, own[key]]);
    return [{
      service: name,
      ownerUrl: own["migration.database.url"] ?? serviceUrl,
      serviceUrl,
      tls: { ...tlsSource("database", own), setting: `${name}.database` },
      ...(database.ownerSettings ? { ownerSettings: Object.fromEntries(ofOwner) } : {}),
    }];
  });
}
