import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import {
  databaseChecks,
  type DatabaseConfig,
  databaseConfig,
  databaseSettings,
  natsChecks,
  type NatsConfig,
  natsConfig,
  natsSettings,
  type RetentionConfig,
  retentionConfig,
  retentionSettings,
  serviceChecks,
  type ServiceConfig,
  serviceConfig,
  serviceSettings,
  workerChecks,
  workerConfig,
} from "@kenri/shared/process/service_settings.ts";
import {
  count,
  duration,
  flag,
  maxTimerMs,
  secretKeys,
} from "@kenri/shared/process/setting_kinds.ts";
import { environment, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { type WorkerOptions, workerSettings } from "@kenri/shared/queue/worker_settings.ts";
import { z } from "zod";
import type { CommitOptions } from "./change_entitlement.ts";
import { program } from "./program.ts";
import type { ReconcileOptions } from "./reconciliation/run.ts";
import type { RetentionOptions } from "./retention.ts";
import { streamOfEvents, streamSettings } from "./stream_settings.ts";

export const schema = z.object({
  ...databaseSettings("entitlement"),
  ...retentionSettings("entitlement"),
  ...prefixed("entitlement.outbox", workerSettings),
  ...prefixed("entitlement", {
    "idempotency.ttl": duration().prefault("24h").describe(
      "How long the answer to an idempotency key is replayed",
    ),
    "max-per-user": count().optional().describe(
      "Items that one user may have, revoked ones included ([limits.md](limits.md))",
    ),
    "seal-key": secretKeys().optional().describe(
      "Seals events for [`recover`](runbook.md#it-makes-only-what-it-can-prove): 32 or more characters; earlier keys follow after commas",
    ),
    "outbox.enabled": flag().prefault("true").describe("Whether this replica runs the relay"),
    "outbox.published-ttl": duration().prefault("24h").describe(
      "How long published rows are kept, to find events that the stream has lost",
    ),
    "retention.audit-months": count().prefault("13").describe(
      "Whole months of audit to keep; `migrate` needs the same value",
    ),
    "reconcile.enabled": flag().prefault("true").describe(
      "Whether this replica checks that every event was received; only with the relay",
    ),
    "reconcile.interval": duration(maxTimerMs).prefault("1h").describe(
      "Time between two reconciliations",
    ),
  }),
  ...streamSettings,
  ...natsSettings,
  ...serviceSettings("entitlement", program.port),
}).check(
  ...databaseChecks("entitlement"),
  ...natsChecks,
  ...workerChecks("entitlement.outbox"),
  ...serviceChecks("entitlement"),
);

export interface Config extends ServiceConfig, DatabaseConfig, NatsConfig {
  stream: WantedStream;
  sealKeys: string[]; // the first one seals, all of them verify
  commit: CommitOptions;
  outbox: WorkerOptions & { enabled: boolean; worker: string };
  retention: RetentionConfig & RetentionOptions;
  reconcile: ReconcileOptions & { enabled: boolean };
}

export function readConfig(
  read: (name: string) => string | undefined = environment,
): Config {
  const settings = parseSettings(schema, read);
  return {
    ...serviceConfig("entitlement", settings),
    ...databaseConfig("entitlement", settings),
    ...natsConfig(settings),
    stream: streamOfEvents(settings),
    sealKeys: settings["entitlement.seal-key"] ?? [],
    commit: {
      idempotencyTtlMs: settings["entitlement.idempotency.ttl"],
      maxPerUser: settings["entitlement.max-per-user"],
    },
    outbox: {
      ...workerConfig("entitlement.outbox", settings),
      enabled: settings["entitlement.outbox.enabled"],
    },
    retention: {
      ...retentionConfig("entitlement", settings),
      publishedTtlMs: settings["entitlement.outbox.published-ttl"],
      auditMonths: settings["entitlement.retention.audit-months"],
    },
    reconcile: {
      enabled: settings["entitlement.reconcile.enabled"],
      intervalMs: settings["entitlement.reconcile.interval"],
      // Within the duplicate window the stream would drop an event that is published again. The
      // rest is far more than an event needs, even with a retry or two.
      graceSeconds: Math.ceil(settings["entitlement.nats.duplicate-window"] / 1_000) + 60,
    },
  };
}
