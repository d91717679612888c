import { loopbackUnlessAccess } from "@kenri/shared/access/settings.ts";
import {
  commonChecks,
  type CommonConfig,
  commonConfig,
  commonSettings,
} from "@kenri/shared/process/common_settings.ts";
import {
  count,
  duration,
  environment,
  flag,
  host,
  maxTimerMs,
  notAbove,
  pageUrl,
  parseSettings,
  port,
  prefixed,
  secretKeys,
  type WorkerOptions,
  workerOptions,
  workerSettings,
} from "@kenri/shared/process/settings.ts";
import type { HttpOptions } from "@kenri/shared/http/serve.ts";
import { databaseUrl } from "@kenri/shared/process/server_urls.ts";
import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import {
  databaseTlsIsUsed,
  tlsSettings,
  type TlsSource,
  tlsSource,
} from "@kenri/shared/postgres/tls.ts";
import { z } from "zod";
import type { CommitOptions } from "./commit_changes.ts";
import type { ReconcileOptions } from "./reconciliation/run.ts";
import type { RetentionOptions } from "./retention.ts";
import { streamOf, streamSettings } from "./stream_settings.ts";

export const schema = z.object({
  ...prefixed("entitlement", {
    "database.url": databaseUrl(),
    "http.host": host().prefault("127.0.0.1"),
    "http.port": port().prefault("8080"),
    "idempotency.ttl": duration().prefault("24h"),
    "max-per-user": count().optional(),
    "seal-key": secretKeys().optional(),
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
  ...streamSettings,
  ...prefixed("entitlement.outbox", workerSettings),
  ...prefixed("entitlement.database", tlsSettings),
  ...commonSettings,
}).check(
  ...databaseTlsIsUsed("entitlement.database"),
  ...commonChecks,
  notAbove("entitlement.outbox.backoff-jitter-min", "entitlement.outbox.backoff-jitter-max"),
  loopbackUnlessAccess("entitlement.http.host"),
);

export interface Config extends CommonConfig {
  databaseUrl: string;
  databaseTls: TlsSource;
  http: HttpOptions;
  stream: WantedStream;
  sealKeys: string[]; // the first seals, all of them are known
  commit: CommitOptions;
  outbox: WorkerOptions & { enabled: boolean; worker: string };
  retention: RetentionOptions & { enabled: boolean; intervalMs: number };
  reconcile: ReconcileOptions & { enabled: boolean };
  debug: boolean;
  consolePeerUrl: string | undefined; // of the other half, for links
}

export function readConfig(
  read: (name: string) => string | undefined = environment,
): Config {
  const settings = parseSettings(schema, read);
  return {
    ...commonConfig(settings),
    databaseUrl: settings["entitlement.database.url"],
    databaseTls: tlsSource("entitlement.database", settings),
    http: {
      hostname: settings["entitlement.http.host"],
      port: settings["entitlement.http.port"],
      requestsAtOnce: settings["http.requests-at-once"],
    },
    stream: streamOf(settings),
    sealKeys: settings["entitlement.seal-key"] ?? [],
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
  };
}
