import { fileURLToPath } from "node:url";

export type Settings = Record<string, string>;

export const dataFolder = fileURLToPath(new URL("../../.kenri/dev", import.meta.url));

// What a developer's run needs: the embedded servers where no others are named, the standard
// stream, and the debug side switched on. Whatever the environment says goes before it.
export function devSettings(
  read: (name: string) => string | undefined,
  urls: { postgres?: string; nats?: string },
): Settings {
  const settings: Settings = {
    ENTITLEMENT_NATS_STREAM: "entitlement-events",
    ENTITLEMENT_NATS_SUBJECT: "entitlement.events",
    ENTITLEMENT_DEBUG_ENABLED: "true",
    ENTITLEMENT_HTTP_HOST: "127.0.0.1",
    ENTITLEMENT_HTTP_PORT: "8080",
    NOTIFICATION_NATS_STREAM: "entitlement-events",
    NOTIFICATION_NATS_SUBJECT: "entitlement.events",
    NOTIFICATION_NATS_DURABLE: "notification-entitlement-consumer",
    NOTIFICATION_DEBUG_ENABLED: "true",
    NOTIFICATION_HTTP_HOST: "127.0.0.1",
    NOTIFICATION_HTTP_PORT: "8081",
    ...(urls.nats ? { NATS_URL: urls.nats } : {}),
  };
  for (const service of ["entitlement", "notification"]) {
    if (!urls.postgres) continue;
    const name = service.toUpperCase();
    settings[`${name}_DATABASE_URL`] = databaseUrl(urls.postgres, service, service);
    settings[`${name}_MIGRATION_DATABASE_URL`] = databaseUrl(urls.postgres, service);
  }
  const own = Object.keys(settings).filter((name) => read(name) !== undefined);
  return { ...settings, ...Object.fromEntries(own.map((name) => [name, read(name) ?? ""])) };
}

function databaseUrl(server: string, database: string, user?: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  if (user) url.username = user;
  return url.href;
}
