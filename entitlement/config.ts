import { type ConsoleConfig, consoles } from "@kenri/shared/console/settings.ts";
import {
  database,
  type DatabaseConfig,
  nats,
  type NatsConfig,
  retention,
  type RetentionConfig,
  service,
  type ServiceConfig,
  worker,
  type WorkerConfig,
} from "@kenri/shared/process/service_settings.ts";
import {
  count,
  duration,
  flag,
  maxTimerMs,
  number,
  secretKeys,
} from "@kenri/shared/process/setting_kinds.ts";
import { environment, notSame, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { z } from "zod";
import type { CommitOptions } from "./change_entitlement.ts";
import type { PointsOptions } from "./points/change_points.ts";
import { unitPattern } from "./points/fields.ts";
import { mostPoints } from "./points/points.ts";
import { program } from "./program.ts";
import type { ReconcileOptions } from "./reconciliation/run.ts";
import type { RetentionOptions } from "./retention.ts";
import { type StreamOfEvents, streamOfEvents, streamSettings } from "./stream_settings.ts";

export const schema = z.object({
  ...database.settings("entitlement"),
  ...retention.settings("entitlement"),
  ...worker.settings("entitlement.outbox"),
  ...worker.settings("entitlement.reservations"),
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
    "points.unit": z.string().regex(unitPattern, "must be 1 to 64 of a-z, 0-9, ., _ and -")
      .prefault("points").describe("The unit of points where a request names none"),
    "points.max-balance": number({ min: 1, max: mostPoints }).optional().describe(
      "The highest balance that a user may have in a unit",
    ),
    "reservations.enabled": flag().prefault("true").describe(
      "Whether this replica carries out reservations; it accepts them in any case",
    ),
    "reservations.batch-size": number({ min: 1, max: 5_000 }).prefault("500").describe(
      "Rows per claim",
    ),
    "reservations.max-ahead": duration().prefault("1826d").describe(
      "How far in the future a reservation may be",
    ),
    "reservations.done-ttl": duration().prefault("30d").describe(
      "How long reservations are kept that are done or cancelled",
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
  ...nats.settings(),
  ...service.settings("entitlement", program.port),
  ...consoles.settings("entitlement"),
}).check(
  ...database.checks("entitlement"),
  ...nats.checks(),
  ...worker.checks("entitlement.outbox"),
  ...worker.checks("entitlement.reservations"),
  ...service.checks("entitlement"),
  notSame("entitlement.points.subject", "entitlement.nats.subject"),
);

export interface Config extends ServiceConfig, ConsoleConfig, DatabaseConfig, NatsConfig {
  stream: StreamOfEvents;
  sealKeys: string[]; // the first one seals, all of them verify
  commit: CommitOptions;
  outbox: WorkerConfig & { enabled: boolean };
  points: PointsOptions;
  reservations: WorkerConfig & { enabled: boolean; maxAheadMs: number };
  retention: RetentionConfig & RetentionOptions;
  reconcile: ReconcileOptions & { enabled: boolean };
}

export function readConfig(
  read: (name: string) => string | undefined = environment,
): Config {
  const settings = parseSettings(schema, read);
  return {
    ...service.config("entitlement", settings),
    ...consoles.config(settings["entitlement.console.peer-url"]),
    ...database.config("entitlement", settings),
    ...nats.config(settings),
    stream: streamOfEvents(settings),
    sealKeys: settings["entitlement.seal-key"] ?? [],
    commit: {
      idempotencyTtlMs: settings["entitlement.idempotency.ttl"],
      maxPerUser: settings["entitlement.max-per-user"],
    },
    outbox: {
      ...worker.config("entitlement.outbox", settings),
      enabled: settings["entitlement.outbox.enabled"],
    },
    points: {
      unit: settings["entitlement.points.unit"],
      maxBalance: settings["entitlement.points.max-balance"] ?? mostPoints,
    },
    reservations: {
      ...worker.config("entitlement.reservations", settings),
      enabled: settings["entitlement.reservations.enabled"],
      maxAheadMs: settings["entitlement.reservations.max-ahead"],
    },
    retention: {
      ...retention.config("entitlement", settings),
      publishedTtlMs: settings["entitlement.outbox.published-ttl"],
      doneReservationsTtlMs: settings["entitlement.reservations.done-ttl"],
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
