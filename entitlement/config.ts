import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import {
  commonSettings,
  serviceChecks,
  type ServiceConfig,
  serviceConfig,
  serviceSettings,
} from "@kenri/shared/process/service_settings.ts";
import {
  count,
  duration,
  flag,
  maxTimerMs,
  secretKeys,
} from "@kenri/shared/process/setting_kinds.ts";
import { environment, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import type { WorkerOptions } from "@kenri/shared/queue/worker_settings.ts";
import { z } from "zod";
import type { CommitOptions } from "./commit_changes.ts";
import type { ReconcileOptions } from "./reconciliation/run.ts";
import type { RetentionOptions } from "./retention.ts";
import { streamOf, streamSettings } from "./stream_settings.ts";

export const schema = z.object({
  ...serviceSettings("entitlement", "outbox", 8080),
  ...prefixed("entitlement", {
    "idempotency.ttl": duration().prefault("24h"),
    "max-per-user": count().optional(),
    "seal-key": secretKeys().optional(),
    "outbox.enabled": flag().prefault("true"),
    "outbox.published-ttl": duration().prefault("24h"),
    "retention.audit-months": count().prefault("13"),
    "reconcile.enabled": flag().prefault("true"),
    "reconcile.interval": duration(maxTimerMs).prefault("1h"),
  }),
  ...streamSettings,
  ...commonSettings,
}).check(...serviceChecks("entitlement", "outbox"));

export interface Config extends ServiceConfig {
  stream: WantedStream;
  sealKeys: string[]; // the first seals, all of them are known
  commit: CommitOptions;
  outbox: WorkerOptions & { enabled: boolean; worker: string };
  retention: ServiceConfig["retention"] & RetentionOptions;
  reconcile: ReconcileOptions & { enabled: boolean };
}

export function readConfig(
  read: (name: string) => string | undefined = environment,
): Config {
  const settings = parseSettings(schema, read);
  const { worker, ...service } = serviceConfig("entitlement", "outbox", settings);
  return {
    ...service,
    stream: streamOf(settings),
    sealKeys: settings["entitlement.seal-key"] ?? [],
    commit: {
      idempotencyTtlMs: settings["entitlement.idempotency.ttl"],
      maxPerUser: settings["entitlement.max-per-user"],
    },
    outbox: { ...worker, enabled: settings["entitlement.outbox.enabled"] },
    retention: {
      ...service.retention,
      publishedTtlMs: settings["entitlement.outbox.published-ttl"],
      auditMonths: settings["entitlement.retention.audit-months"],
    },
    reconcile: {
      enabled: settings["entitlement.reconcile.enabled"],
      intervalMs: settings["entitlement.reconcile.interval"],
      // Within the duplicate window the stream would drop an event that is published again. The rest
      // is far more than an event needs, even with a retry or two.
      graceSeconds: Math.ceil(settings["entitlement.nats.duplicate-window"] / 1_000) + 60,
    },
  };
}
