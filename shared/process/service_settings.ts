import { z } from "zod";
import type { AccessOptions } from "../access/authenticator.ts";
import { burstHasRate, rateOf, type RateOptions, rateSettings } from "../access/rate.ts";
import {
  accessOptions,
  accessSettings,
  issuerIsWhole,
  loopbackUnlessAccess,
} from "../access/settings.ts";
import type { HttpOptions } from "../http/serve.ts";
import type { NatsServers } from "../nats/connection.ts";
import {
  databaseTlsIsUsed,
  natsTlsIsUsed,
  tlsSettings,
  type TlsSource,
  tlsSource,
} from "../postgres/tls.ts";
import { type WorkerOptions, workerOptions, workerSettings } from "../queue/worker_settings.ts";
import { logSettings, type UserIds } from "./log.ts";
import { databaseUrl, natsUrls } from "./server_urls.ts";
import {
  count,
  duration,
  flag,
  host,
  maxTimerMs,
  number,
  pageUrl,
  port,
  text,
} from "./setting_kinds.ts";
import { notAbove, type Prefixed, prefixed, unprefixed } from "./settings.ts";

// The settings that every service has: some have the same name in all services, the others begin with
// the name of the service.

export const commonSettings = {
  ...accessSettings,
  ...rateSettings,
  ...logSettings,
  "http.requests-at-once": count().prefault("5000"),
  "nats.url": natsUrls(),
  ...prefixed("nats", tlsSettings),
  "nats.replicas": number({ min: 1, max: 5 }).prefault("1"),
  "shutdown.grace": duration(maxTimerMs).prefault("10s"),
  "hostname": text().optional(),
};

const ownSettings = {
  "database.url": databaseUrl(),
  ...prefixed("database", tlsSettings),
  "http.host": host().prefault("127.0.0.1"),
  "http.port": port(),
  "retention.enabled": flag().prefault("true"),
  "retention.cleanup-interval": duration(maxTimerMs).prefault("1h"),
  "debug.enabled": flag().prefault("false"),
  "console.peer-url": pageUrl().optional(),
};

type OwnSettings = Omit<typeof ownSettings, "http.port"> & {
  "http.port": z.ZodPrefault<ReturnType<typeof port>>;
};

type ServiceSettings<Service extends string, Worker extends string> =
  & Prefixed<Service, OwnSettings>
  & Prefixed<`${Service}.${Worker}`, typeof workerSettings>;

export function serviceSettings<Service extends string, Worker extends string>(
  service: Service,
  worker: Worker,
  httpPort: number,
): ServiceSettings<Service, Worker> {
  return {
    ...prefixed(service, { ...ownSettings, "http.port": port().prefault(`${httpPort}`) }),
    ...prefixed(`${service}.${worker}`, workerSettings),
  };
}

export function serviceChecks(
  service: string,
  worker: string,
): z.core.$ZodCheck<Record<string, unknown>>[] {
  const ofWorker = `${service}.${worker}`;
  return [
    ...databaseTlsIsUsed(`${service}.database`),
    ...natsTlsIsUsed(),
    issuerIsWhole,
    burstHasRate,
    notAbove(`${ofWorker}.backoff-jitter-min`, `${ofWorker}.backoff-jitter-max`),
    loopbackUnlessAccess(`${service}.http.host`),
  ];
}

export interface ServiceConfig {
  databaseUrl: string;
  databaseTls: TlsSource;
  nats: Required<NatsServers>;
  http: HttpOptions;
  access: AccessOptions;
  rate: RateOptions | undefined;
  retention: { enabled: boolean; intervalMs: number };
  debug: boolean;
  consolePeerUrl: string | undefined; // where the console of the other service is, for links
  logUserIds: UserIds;
  shutdownGraceMs: number;
}

type Values<Shape extends z.ZodRawShape> = z.output<z.ZodObject<Shape>>;

export function serviceConfig<Service extends string, Worker extends string>(
  service: Service,
  worker: Worker,
  settings:
    & Values<typeof commonSettings>
    & Prefixed<Service, Values<OwnSettings>>
    & Prefixed<`${Service}.${Worker}`, Values<typeof workerSettings>>,
): ServiceConfig & { worker: WorkerOptions & { worker: string } } {
  const own = unprefixed<Service, Values<OwnSettings>>(service, settings);
  const ofWorker = unprefixed<`${Service}.${Worker}`, Values<typeof workerSettings>>(
    `${service}.${worker}`,
    settings,
  );
  return {
    databaseUrl: own["database.url"],
    databaseTls: { ...tlsSource("database", own), setting: `${service}.database` },
    nats: { urls: settings["nats.url"], tls: tlsSource("nats", settings) },
    http: {
      hostname: own["http.host"],
      port: own["http.port"],
      requestsAtOnce: settings["http.requests-at-once"],
    },
    access: accessOptions(settings),
    rate: rateOf(settings),
    worker: { ...workerOptions(ofWorker), worker: settings["hostname"] ?? Deno.hostname() },
    retention: {
      enabled: own["retention.enabled"],
      intervalMs: own["retention.cleanup-interval"],
    },
    debug: own["debug.enabled"],
    consolePeerUrl: own["console.peer-url"],
    logUserIds: settings["log.user-ids"],
    shutdownGraceMs: settings["shutdown.grace"],
  };
}
