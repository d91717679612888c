import type { z } from "zod";
import type { AccessOptions } from "../access/authenticator.ts";
import { burstNeedsRate, rateOf, type RateOptions, rateSettings } from "../access/rate.ts";
import {
  accessOptions,
  accessSettings,
  issuerIsComplete,
  loopbackUnlessAccess,
} from "../access/settings.ts";
import type { HttpOptions } from "../http/serve.ts";
import type { NatsServers } from "../nats/connection.ts";
import {
  databaseTlsIsUsed,
  natsTlsIsUsed,
  redisTlsIsUsed,
  tlsSettings,
  type TlsSource,
  tlsSource,
} from "../postgres/tls.ts";
import { type WorkerOptions, workerOptions, workerSettings } from "../queue/worker_settings.ts";
import { logSettings, type UserIds } from "./log.ts";
import type { RedisServer } from "../redis/redis_link.ts";
import { databaseUrl, natsUrls, redisUrl } from "./server_urls.ts";
import { count, duration, flag, host, maxTimerMs, number, port, text } from "./setting_kinds.ts";
import { notAbove, type Prefixed, prefixed, unprefixed } from "./settings.ts";

// The settings of a service by what it has: every service has `serviceSettings`, and those of a
// database, of NATS, of each worker and of retention if it has them. Each comes with its checks, if
// it needs any, and with a function that makes options of the values. Settings without a prefix have
// the same names in all services.

type Shape = z.ZodRawShape;
type Values<Of extends Shape> = z.output<z.ZodObject<Of>>;
type Check = z.core.$ZodCheck<Record<string, unknown>>;

const shutdownSettings = {
  "shutdown.grace": duration(maxTimerMs).prefault("10s").describe(
    "Time to finish the work in hand after SIGTERM",
  ),
};

const commonSettings = {
  ...accessSettings,
  ...rateSettings,
  ...logSettings,
  "http.requests-at-once": count().prefault("5000").describe(
    "Requests handled at once by a replica; those without a credential get a fiftieth of it",
  ),
  ...shutdownSettings,
  "hostname": text().optional().meta({
    description: "Name of this process in its leases, for people to read",
    shownDefault: "the host's name",
  }),
};

const ownSettings = (httpPort: number) => ({
  "http.host": host().prefault("127.0.0.1").describe(
    "Address to listen on; without credentials only a loopback address is allowed",
  ),
  "http.port": port().prefault(`${httpPort}`).describe("Port to listen on"),
  "debug.enabled": flag().prefault("false").describe(
    "Whether operators can inspect and change data, with the scopes for it",
  ),
});

type OwnSettings = ReturnType<typeof ownSettings>;

function serviceSettings<Service extends string>(
  service: Service,
  httpPort: number,
): Prefixed<Service, OwnSettings> & typeof commonSettings {
  return { ...prefixed(service, ownSettings(httpPort)), ...commonSettings };
}

function serviceChecks(service: string): Check[] {
  return [issuerIsComplete, burstNeedsRate, loopbackUnlessAccess(`${service}.http.host`)];
}

export interface ServiceConfig {
  http: HttpOptions;
  access: AccessOptions;
  rate: RateOptions | undefined;
  debug: boolean;
  logUserIds: UserIds;
  shutdownGraceMs: number;
}

function serviceConfig<Service extends string>(
  service: Service,
  settings: Prefixed<Service, Values<OwnSettings>> & Values<typeof commonSettings>,
): ServiceConfig {
  const own = unprefixed<Service, Values<OwnSettings>>(service, settings);
  return {
    http: {
      hostname: own["http.host"],
      port: own["http.port"],
      requestsAtOnce: settings["http.requests-at-once"],
    },
    access: accessOptions(settings),
    rate: rateOf(settings),
    debug: own["debug.enabled"],
    logUserIds: settings["log.user-ids"],
    shutdownGraceMs: settings["shutdown.grace"],
  };
}

const databaseFields = {
  "database.url": databaseUrl().describe(
    "`postgres://role:password@host:port/database`, with the service's own role",
  ),
  ...prefixed("database", tlsSettings),
};

function databaseSettings<Service extends string>(
  service: Service,
): Prefixed<Service, typeof databaseFields> {
  return prefixed(service, databaseFields);
}

function databaseChecks(service: string): Check[] {
  return databaseTlsIsUsed(`${service}.database`);
}

export interface DatabaseConfig {
  databaseUrl: string;
  databaseTls: TlsSource;
}

function databaseConfig<Service extends string>(
  service: Service,
  settings: Prefixed<Service, Values<typeof databaseFields>>,
): DatabaseConfig {
  const own = unprefixed<Service, Values<typeof databaseFields>>(service, settings);
  return {
    databaseUrl: own["database.url"],
    databaseTls: { ...tlsSource("database", own), setting: `${service}.database` },
  };
}

const natsSettings = {
  "nats.url": natsUrls().describe(
    "One or more `nats://host:port`, or `tls://host:port` for encryption, separated by commas",
  ),
  ...prefixed("nats", tlsSettings),
  "nats.replicas": number({ min: 1, max: 5 }).prefault("1").describe(
    "Replicas of the streams; 3 in a cluster",
  ),
};

export interface NatsConfig {
  nats: Required<NatsServers>;
}

function natsConfig(settings: Values<typeof natsSettings>): NatsConfig {
  return { nats: { urls: settings["nats.url"], tls: tlsSource("nats", settings) } };
}

const redisSettings = {
  "redis.url": redisUrl().describe(
    "`redis://user:password@host:port/number`, or `rediss://` for encryption",
  ),
  ...prefixed("redis", tlsSettings),
};

export interface RedisConfig {
  redis: RedisServer;
}

function redisConfig(settings: Values<typeof redisSettings>): RedisConfig {
  return { redis: { url: settings["redis.url"], tls: tlsSource("redis", settings) } };
}

const retentionFields = {
  "retention.enabled": flag().prefault("true").describe(
    "Whether this replica deletes what is past its retention",
  ),
  "retention.cleanup-interval": duration(maxTimerMs).prefault("1h").describe(
    "Time between two clean-ups",
  ),
};

function retentionSettings<Service extends string>(
  service: Service,
): Prefixed<Service, typeof retentionFields> {
  return prefixed(service, retentionFields);
}

export interface RetentionConfig {
  enabled: boolean;
  intervalMs: number;
}

function retentionConfig<Service extends string>(
  service: Service,
  settings: Prefixed<Service, Values<typeof retentionFields>>,
): RetentionConfig {
  const own = unprefixed<Service, Values<typeof retentionFields>>(service, settings);
  return { enabled: own["retention.enabled"], intervalMs: own["retention.cleanup-interval"] };
}

export type WorkerConfig = WorkerOptions & { worker: string };

/** The prefix is that of one worker, such as `NAME.outbox`. */
function workerChecks(prefix: string): Check[] {
  return [notAbove(`${prefix}.backoff-jitter-min`, `${prefix}.backoff-jitter-max`)];
}

function workerConfig<Prefix extends string>(
  prefix: Prefix,
  settings: Prefixed<Prefix, Values<typeof workerSettings>> & { "hostname"?: string | undefined },
): WorkerConfig {
  const own = unprefixed<Prefix, Values<typeof workerSettings>>(prefix, settings);
  return { ...workerOptions(own), worker: settings["hostname"] ?? Deno.hostname() };
}

function workerSettingsOf<Prefix extends string>(
  prefix: Prefix,
): Prefixed<Prefix, typeof workerSettings> {
  return prefixed(prefix, workerSettings);
}

// What a service may have. Each has its settings, checks of these together, and what they become.
export const shutdown = { settings: shutdownSettings }; // of every process
export const service = { settings: serviceSettings, checks: serviceChecks, config: serviceConfig };
export const database = {
  settings: databaseSettings,
  checks: databaseChecks,
  config: databaseConfig,
};
export const nats = { settings: () => natsSettings, checks: natsTlsIsUsed, config: natsConfig };
export const redis = { settings: () => redisSettings, checks: redisTlsIsUsed, config: redisConfig };
export const retention = { settings: retentionSettings, config: retentionConfig };
export const worker = { settings: workerSettingsOf, checks: workerChecks, config: workerConfig };
