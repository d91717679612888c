import { type ConsoleConfig, consoles } from "@kenri/shared/console/settings.ts";
import type { WantedStream } from "@kenri/shared/nats/streams.ts";
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
import { count, duration, flag } from "@kenri/shared/process/setting_kinds.ts";
import { environment, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { z } from "zod";
import { program } from "./program.ts";
import type { RetentionOptions } from "./retention.ts";
import { streamOfEvents, streamSettings } from "./stream_settings.ts";

export const schema = z.object({
  ...database.settings("account"),
  ...retention.settings("account"),
  ...worker.settings("account.outbox"),
  ...prefixed("account", {
    "outbox.enabled": flag().prefault("true").describe("Whether this replica runs the relay"),
    "outbox.published-ttl": duration().prefault("24h").describe(
      "How long published rows are kept, to find events that the stream has lost",
    ),
    "retention.audit-days": count().prefault("400").describe(
      "Days of audit to keep; `migrate` needs the same value",
    ),
  }),
  ...streamSettings,
  ...nats.settings(),
  ...service.settings("account", program.port),
  ...consoles.settings("account"),
}).check(
  ...database.checks("account"),
  ...nats.checks(),
  ...worker.checks("account.outbox"),
  ...service.checks("account"),
);

export interface Config extends ServiceConfig, ConsoleConfig, DatabaseConfig, NatsConfig {
  stream: WantedStream;
  outbox: WorkerConfig & { enabled: boolean };
  retention: RetentionConfig & RetentionOptions;
}

export function readConfig(read: (name: string) => string | undefined = environment): Config {
  const settings = parseSettings(schema, read);
  return {
    ...service.config("account", settings),
    ...consoles.config(settings["account.console.peer-url"]),
    ...database.config("account", settings),
    ...nats.config(settings),
    stream: streamOfEvents(settings),
    outbox: {
      ...worker.config("account.outbox", settings),
      enabled: settings["account.outbox.enabled"],
    },
    retention: {
      ...retention.config("account", settings),
      publishedTtlMs: settings["account.outbox.published-ttl"],
      auditDays: settings["account.retention.audit-days"],
    },
  };
}
