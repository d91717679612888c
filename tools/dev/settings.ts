import type { Login } from "../servers/postgres.ts";

export type Settings = Record<string, string>;

/** The URLs of the embedded servers; absent where the environment names others. */
export interface ServerUrls {
  postgres?: (login: Login) => string;
  nats?: string;
}

/** Stands for servers that are still to be started. */
export const futureServers: ServerUrls = {
  postgres: ({ database }) => `postgres://owner@127.0.0.1:5432/${database}`,
  nats: "nats://127.0.0.1:4222",
};

// The settings of a developer's run: the embedded servers unless others are named, the standard
// stream, and the routes for operators. The environment overrides them.
export function devSettings(
  read: (name: string) => string | undefined,
  urls: ServerUrls,
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
  const own = Object.keys(settings).filter((name) => read(name) !== undefined);
  for (const name of own) settings[name] = read(name) ?? "";
  Object.assign(settings, consoleSettings(settings, read));
  for (const service of ["entitlement", "notification"]) {
    Object.assign(settings, databaseSettings(service, read, urls.postgres));
  }
  return settings;
}

// The two consoles link to each other.
function consoleSettings(
  settings: Settings,
  read: (name: string) => string | undefined,
): Settings {
  const links: Settings = {};
  for (
    const [service, other] of [["ENTITLEMENT", "NOTIFICATION"], ["NOTIFICATION", "ENTITLEMENT"]]
  ) {
    const name = `${service}_CONSOLE_PEER_URL`;
    const host = settings[`${other}_HTTP_HOST`] ?? "";
    const url = `http://${host.includes(":") ? `[${host}]` : host}:${
      settings[`${other}_HTTP_PORT`]
    }`;
    const peer = read(name) ?? (URL.canParse(url) ? url : undefined);
    if (peer !== undefined) links[name] = peer;
  }
  return links;
}

// A given database is migrated by its own owner, who is the service's role if no other is named.
function databaseSettings(
  service: string,
  read: (name: string) => string | undefined,
  embedded: ServerUrls["postgres"],
): Settings {
  const name = `${service.toUpperCase()}_DATABASE_URL`;
  const ownerName = `${service.toUpperCase()}_MIGRATION_DATABASE_URL`;
  const given = read(name);
  if (given !== undefined) return { [name]: given, [ownerName]: read(ownerName) ?? given };
  if (embedded === undefined) return {};
  return {
    [name]: embedded({ database: service, user: service }),
    [ownerName]: embedded({ database: service }),
  };
}
