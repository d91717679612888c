import { count, parseSettings, serverUrl } from "@kenri/shared/config";
import { z } from "zod";

const url = serverUrl("postgres:", "postgresql:");

const schema = z.object({
  "entitlement.database.url": url,
  "entitlement.migration.database.url": url.optional(),
  "entitlement.retention.audit-months": count().prefault("13"),
  "notification.database.url": url,
  "notification.migration.database.url": url.optional(),
});

export interface DatabaseUrls {
  service: "entitlement" | "notification";
  ownerUrl: string;
  serviceUrl: string;
  auditMonths?: number;
}

export function readDatabaseUrls(read = (name: string) => Deno.env.get(name)): DatabaseUrls[] {
  const settings = parseSettings(schema, read);
  return (["entitlement", "notification"] as const).map((service) => {
    const serviceUrl = settings[`${service}.database.url`];
    const ownerUrl = settings[`${service}.migration.database.url`] ?? serviceUrl;
    const auditMonths = settings["entitlement.retention.audit-months"];
    return { service, ownerUrl, serviceUrl, ...(service === "entitlement" ? { auditMonths } : {}) };
  });
}
