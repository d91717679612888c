import {
  accessOptions,
  accessSettings,
  issuerIsWhole,
  loopbackUnlessAccess,
} from "@kenri/shared/access/settings";
import type { AccessOptions } from "@kenri/shared/access/door";
import { logSettings, type UserIds } from "@kenri/shared/log";
import { rateOf, type RateOptions, rateSettings } from "@kenri/shared/access/rate";
import {
  count,
  duration,
  flag,
  host,
  maxTimerMs,
  natsName,
  natsSubject,
  notAbove,
  number,
  pageUrl,
  parseSettings,
  port,
  prefixed,
  text,
  type WorkerOptions,
  workerOptions,
  workerSettings,
} from "@kenri/shared/config";
import type { WantedStream } from "@kenri/shared/jetstream";
import type { NatsServers } from "@kenri/shared/nats_connection";
import type { HttpOptions } from "@kenri/shared/serve";
import { databaseUrl, natsUrls } from "@kenri/shared/server_urls";
import {
  databaseTlsIsUsed,
  natsTlsIsUsed,
  tlsSettings,
  type TlsSource,
  tlsSource,
} from "@kenri/shared/tls";
import { z } from "zod";
import type { CommitOptions } from "./commit_changes.ts";
import type { ReconcileOptions } from "./reconcile.ts";
import type { RetentionOptions } from "./retention.ts";

export const schema = z.object({
  ...prefixed("entitlement", {
    "database.url": databaseUrl(),
    "http.host": host().prefault("127.0.0.1"),
    "http.port": port().prefault("8080"),
    "nats.subject": natsSubject(),
    "nats.stream": natsName(),
    "nats.duplicate-window": duration().prefault("2m"),
    "idempotency.ttl": duration().prefault("24h"),
    "max-per-user": count().optional(),
    "outbox.enabled": flag().prefault("true"),
    "outbox.published-ttl": duration().prefault("24h"),
    "retention.enabled": flag().prefault("true"),
    "retention.cleanup-interval": duration(maxTimerMs).prefault("1h"),
    "retention.audit-months": count().prefault("13"),
    "reconcile.enabled": flag().prefault("true"),
    "reconcile.interval": duration(maxTimerMs).prefault("1h"),
    "debug.enabled": flag().prefault("false"),
    "console.peer-url": pageUrl().optional(),
  }),
  ...prefixed("entitlement.outbox", workerSettings),
  ...accessSettings,
  ...logSettings,
  ...rateSettings,
  "http.requests-at-once": count().prefault("5000"),
  ...prefixed("entitlement.database", tlsSettings),
  "nats.url": natsUrls(),
  ...prefixed("nats", tlsSettings),
  "nats.replicas": number({ min: 1, max: 5 }).prefault("1"),
  "shutdown.grace": duration(maxTimerMs).prefault("10s"),
  "hostname": text().optional(),
}).check(
  ...databaseTlsIsUsed("entitlement.database"),
  ...natsTlsIsUsed(),
  notAbove("entitlement.outbox.backoff-jitter-min", "entitlement.outbox.backoff-jitter-max"),
  issuerIsWhole,
  loopbackUnlessAccess("entitlement.http.host"),
);

export interface Config {
  databaseUrl: string;
  databaseTls: TlsSource;
  nats: Required<NatsServers>;
  http: HttpOptions;
  access: AccessOptions;
  logUserIds: UserIds;
  rate: RateOptions | undefined;
  stream: WantedStream;
  commit: CommitOptions;
  outbox: WorkerOptions & { enabled: boolean; worker: string };
  retention: RetentionOptions & { enabled: boolean; intervalMs: number };
  reconcile: ReconcileOptions & { enabled: boolean };
  debug: boolean;
  consolePeerUrl: string | undefined; // of the other half, for links
  shutdownGraceMs: number;
}

export function readConfig(
  read: (name: string) => string | undefined = (name) => Deno.env.get(name),
): Config {
  const settings = parseSettings(schema, read);
  return {
    databaseUrl: settings["entitlement.database.url"],
    databaseTls: tlsSource("entitlement.database", settings),
    nats: { urls: settings["nats.url"], tls: tlsSource("nats", settings) },
    http: {
      hostname: settings["entitlement.http.host"],
      port: settings["entitlement.http.port"],
      requestsAtOnce: settings["http.requests-at-once"],
    },
    access: accessOptions(settings),
    logUserIds: settings["log.user-ids"],
    rate: rateOf(settings),
    stream: {
      name: settings["entitlement.nats.stream"],
      subject: settings["entitlement.nats.subject"],
      duplicateWindowMs: settings["entitlement.nats.duplicate-window"],
      replicas: settings["nats.replicas"],
    },
    commit: {
      idempotencyTtlMs: settings["entitlement.idempotency.ttl"],
      maxPerUser: settings["entitlement.max-per-user"],
    },
    outbox: {
      ...workerOptions((name) => settings[`entitlement.outbox.${name}`]),
      enabled: settings["entitlement.outbox.enabled"],
      worker: settings["hostname"] ?? Deno.hostname(),
    },
    retention: {
      enabled: settings["entitlement.retention.enabled"],
      intervalMs: settings["entitlement.retention.cleanup-interval"],
      publishedTtlMs: settings["entitlement.outbox.published-ttl"],
      auditMonths: settings["entitlement.retention.audit-months"],
    },
    reconcile: {
      enabled: settings["entitlement.reconcile.enabled"],
      intervalMs: settings["entitlement.reconcile.interval"],
      // Within the duplicate window the stream would swallow what is published again. The rest is far
      // above what an event takes, even with a retry or two.
      graceSeconds: Math.ceil(settings["entitlement.nats.duplicate-window"] / 1_000) + 60,
    },
    debug: settings["entitlement.debug.enabled"],
    consolePeerUrl: settings["entitlement.console.peer-url"],
    shutdownGraceMs: settings["shutdown.grace"],
  };
}
