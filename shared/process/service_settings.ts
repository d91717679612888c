import { z } from "zod";
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
  type NamedPage,
  number,
  pageUrls,
  port,
  text,
} from "./setting_kinds.ts";
import { notAbove, type Prefixed, prefixed, unprefixed } from "./settings.ts";

// The settings that every service has: some have the same name in all services, the others begin
// with the name of the service.

export const commonSettings = {
  ...accessSettings,
  ...rateSettings,
  ...logSettings,
  "http.requests-at-once": count().prefault("5000").describe(
    "Requests handled at once by a replica; those without a credential get a fiftieth of it",
  ),
  "nats.url": natsUrls().describe(
    "One or more `nats://host:port`, or `tls://host:port` for encryption, separated by commas",
  ),
  ...prefixed("nats", tlsSettings),
  "nats.replicas": number({ min: 1, max: 5 }).prefault("1").describe(
    "Replicas of the streams; 3 in a cluster",
  ),
  "shutdown.grace": duration(maxTimerMs).prefault("10s").describe(
    "Time to finish the work in hand after SIGTERM",
  ),
  "hostname": text().optional().meta({
    description: "Name of this process in its leases, for people to read",
    shownDefault: "the host's name",
  }),
};

const ownSettings = (httpPort: number) => ({
  "database.url": databaseUrl().describe(
    "`postgres://role:password@host:port/database`, with the service's own role",
  ),
  ...prefixed("database", tlsSettings),
  "http.host": host().prefault("127.0.0.1").describe(
    "Address to listen on; without credentials only a loopback address is allowed",
  ),
  "http.port": port().prefault(`${httpPort}`).describe("Port to listen on"),
  "retention.enabled": flag().prefault("true").describe(
    "Whether this replica deletes what is past its retention",
  ),
  "retention.cleanup-interval": duration(maxTimerMs).prefault("1h").describe(
    "Time between two clean-ups",
  ),
  "debug.enabled": flag().prefault("false").describe(
    "Whether operators can inspect and change data, with the scopes for it",
  ),
  "console.peer-url": pageUrls().optional().describe(
    "Consoles of other services, for links: a URL, or several as `name=URL`, separated by commas",
  ),
});

type OwnSettings = ReturnType<typeof ownSettings>;

type ServiceSettings<Service extends string, Worker extends string> =
  & Prefixed<Service, OwnSettings>
  & Prefixed<`${Service}.${Worker}`, typeof workerSettings>;

export function serviceSettings<Service extends string, Worker extends string>(
  service: Service,
  worker: Worker,
  httpPort: number,
): ServiceSettings<Service, Worker> {
  return {
    ...prefixed(service, ownSettings(httpPort)),
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
    issuerIsComplete,
    burstNeedsRate,
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
  consolePeers: NamedPage[]; // the consoles of other services, for links
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
    consolePeers: own["console.peer-url"] ?? [],
    logUserIds: settings["log.user-ids"],
    shutdownGraceMs: settings["shutdown.grace"],
  };
}
