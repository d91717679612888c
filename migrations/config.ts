import { environment, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { count } from "@kenri/shared/process/setting_kinds.ts";
import { databaseUrl } from "@kenri/shared/process/server_urls.ts";
import { tlsSettings, type TlsSource, tlsSource } from "@kenri/shared/postgres/tls.ts";
import { z } from "zod";

function ownerUrl(serviceUrl: string, tasks: string) {
  return databaseUrl().optional().meta({
    description: `URL of the database's owner, for ${tasks} only`,
    shownDefault: `\`${serviceUrl}\``,
  });
}

// The owner connects to the same server as the service, so it uses the same TLS settings.
export const schema = z.object({
  "entitlement.database.url": databaseUrl(),
  "entitlement.migration.database.url": ownerUrl(
    "entitlement.database.url",
    "`migrate` and `recover`",
  ),
  ...prefixed("entitlement.database", tlsSettings),
  "entitlement.retention.audit-months": count().prefault("13"),
  "notification.database.url": databaseUrl(),
  "notification.migration.database.url": ownerUrl("notification.database.url", "`migrate`"),
  ...prefixed("notification.database", tlsSettings),
});

export interface DatabaseUrls {
  service: "entitlement" | "notification";
  ownerUrl: string;
  serviceUrl: string;
  auditMonths?: number;
  tls: TlsSource;
}

export function readDatabaseUrls(read = environment): DatabaseUrls[] {
  const settings = parseSettings(schema, read);
  return (["entitlement", "notification"] as const).map((service) => {
    const serviceUrl = settings[`${service}.database.url`];
    const ownerUrl = settings[`${service}.migration.database.url`] ?? serviceUrl;
    const tls = tlsSource(`${service}.database`, settings);
    const auditMonths = settings["entitlement.retention.audit-months"];
    const ofService = service === "entitlement" ? { auditMonths } : {};
    return { service, ownerUrl, serviceUrl, tls, ...ofService };
  });
}
