import { hasConsole } from "../../shared/operators/looks.ts";
import { environmentName, type Service } from "../../shared/process/program.ts";
import * as all from "../../services.ts";
import type { Login } from "../servers/postgres.ts";
import { newSecrets } from "./secrets.ts";

export type Settings = Record<string, string>;
type Read = (name: string) => string | undefined;
type Services = Record<string, Service>;

/** The embedded servers; absent where the environment names others. */
export interface ServerUrls {
  postgres?: (login: Login) => string;
  nats?: string;
  redis?: string;
  issuer?: string | undefined;
}

/** Stands for servers that are still to be started. */
export const futureServers: ServerUrls = {
  postgres: ({ database }) => `postgres://owner@127.0.0.1:5432/${database}`,
  nats: "nats://127.0.0.1:4222",
  redis: "redis://127.0.0.1:6379",
  issuer: "http://127.0.0.1:8086",
};

// The settings of a developer's run: the embedded servers unless others are named, the standard
// streams, the sender, and the routes for operators. The environment overrides them.
export function devSettings(
  read: Read,
  urls: ServerUrls,
  secrets: Settings = newSecrets(),
  services: Services = all,
): Settings {
  const settings: Settings = { ...secrets };
  for (const service of Object.values(services)) Object.assign(settings, ownSettings(service));
  if (urls.nats) settings["NATS_URL"] = urls.nats;
  if (urls.redis) settings["REDIS_URL"] = urls.redis;
  if (urls.issuer) settings["GATEWAY_ISSUER"] = urls.issuer;
  for (const name of Object.keys(settings)) settings[name] = read(name) ?? settings[name] ?? "";
  for (const service of Object.values(services)) {
    for (const [name, other] of Object.entries(service.dev?.urls ?? {})) {
      const answering = services[other];
      if (answering) settings[name] = read(name) ?? urlOf(answering, settings);
    }
    Object.assign(settings, consoleSettings(service, services, settings, read));
    if (service.database) Object.assign(settings, databaseSettings(service, read, urls.postgres));
  }
  return settings;
}

function ownSettings({ name, port, dev }: Service): Settings {
  const prefix = environmentName(name);
  return {
    ...dev?.settings,
    [`${prefix}_DEBUG_ENABLED`]: "true",
    [`${prefix}_HTTP_HOST`]: "127.0.0.1",
    [`${prefix}_HTTP_PORT`]: `${port}`,
  };
}

// Each console links to the others.
function consoleSettings(
  { name, looks }: Service,
  services: Services,
  settings: Settings,
  read: Read,
): Settings {
  if (!hasConsole(looks)) return {};
  const setting = `${environmentName(name)}_CONSOLE_PEER_URL`;
  const others = Object.values(services)
    .filter((other) => other.name !== name && hasConsole(other.looks))
    .map((other) => ({ name: other.name, url: urlOf(other, settings) }))
    .filter(({ url }) => URL.canParse(url));
  const urls = others.map(({ name, url }) => `${name}=${url}`);
  const peers = read(setting) ?? urls.join();
  return peers === "" ? {} : { [setting]: peers };
}

export function urlOf({ name }: Service, settings: Settings): string {
  const host = settings[`${environmentName(name)}_HTTP_HOST`] ?? "";
  const port = settings[`${environmentName(name)}_HTTP_PORT`];
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The settings with the urls of a service's database. */
export function databaseUrlNames({ name }: Service): { service: string; owner: string } {
  const prefix = environmentName(name);
  return { service: `${prefix}_DATABASE_URL`, owner: `${prefix}_MIGRATION_DATABASE_URL` };
}

// A given database is migrated by its own owner, who is the service's role if no other is named.
function databaseSettings(
  service: Service,
  read: Read,
  embedded: ServerUrls["postgres"],
): Settings {
  const names = databaseUrlNames(service);
  const given = read(names.service);
  if (given !== undefined) {
    return { [names.service]: given, [names.owner]: read(names.owner) ?? given };
  }
  if (embedded === undefined) return {};
  return {
    [names.service]: embedded({ database: service.name, user: service.name }),
    [names.owner]: embedded({ database: service.name }),
  };
}
