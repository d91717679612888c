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
  type WorkerOptions,
  workerOptions,
  workerSettings,
} from "@kenri/shared/process/settings.ts";
import type { HttpOptions } from "@kenri/shared/http/serve.ts";
import { databaseUrl } from "@kenri/shared/process/server_urls.ts";
import {
  databaseTlsIsUsed,
  tlsSettings,
  type TlsSource,
  tlsSource,
} from "@kenri/shared/postgres/tls.ts";
import { z } from "zod";
import type { RetentionOptions } from "./retention.ts";
import { type StreamOptions, streamSettings, streamsOf } from "./stream_settings.ts";

const injection = "notification.delivery.failure-injection.enabled";
const injectionPrefix = "notification.delivery.failure-injection.user-id-prefix";

// A prefix alone does nothing, and an empty one would fail every user: neither can be meant. Said
// also while other settings are wrong.
const prefixIsThere = z.refine<Record<string, unknown>>(
  (value) => value[injection] !== true || value[injectionPrefix] !== "",
  {
    path: [injectionPrefix],
    message: "must not be empty while failure injection is enabled",
    when: () => true,
  },
);
const injectionIsEnabled = z.refine<Record<string, unknown>>(
  (value) => value[injection] !== false || value[injectionPrefix] === "",
  {
    path: [injection],
    message: "must be true for a user-id-prefix to have an effect",
    when: () => true,
  },
);

export const schema = z.object({
  ...prefixed("notification", {
    "database.url": databaseUrl(),
    "http.host": host().prefault("127.0.0.1"),
    "http.port": port().prefault("8081"),
    "delivery.send-timeout": duration(maxTimerMs).prefault("10s"),
    "delivery.predecessor-wait": duration().prefault("30s"),
    "delivery.failure-injection.enabled": flag().prefault("false"),
    "delivery.failure-injection.user-id-prefix": z.string().prefault(""),
    "retention.enabled": flag().prefault("true"),
    "retention.retention-days": count().prefault("30"),
    "retention.cleanup-interval": duration(maxTimerMs).prefault("1h"),
    "debug.enabled": flag().prefault("false"),
    "console.peer-url": pageUrl().optional(),
  }),
  ...streamSettings,
  ...prefixed("notification.delivery", workerSettings),
  ...prefixed("notification.database", tlsSettings),
  ...commonSettings,
}).check(
  ...databaseTlsIsUsed("notification.database"),
  ...commonChecks,
  notAbove("notification.delivery.backoff-jitter-min", "notification.delivery.backoff-jitter-max"),
  loopbackUnlessAccess("notification.http.host"),
  prefixIsThere,
  injectionIsEnabled,
);

export interface Config extends CommonConfig, StreamOptions {
  databaseUrl: string;
  databaseTls: TlsSource;
  http: HttpOptions;
  delivery: WorkerOptions & { worker: string; sendTimeoutMs: number };
  predecessorWaitMs: number;
  failingUserIdPrefix: string;
  retention: RetentionOptions & { enabled: boolean; intervalMs: number };
  debug: boolean;
  consolePeerUrl: string | undefined; // of the other half, for links
}

export function readConfig(
  read: (name: string) => string | undefined = environment,
): Config {
  const settings = parseSettings(schema, read);
  return {
    ...commonConfig(settings),
    databaseUrl: settings["notification.database.url"],
    databaseTls: tlsSource("notification.database", settings),
    http: {
      hostname: settings["notification.http.host"],
      port: settings["notification.http.port"],
      requestsAtOnce: settings["http.requests-at-once"],
    },
    ...streamsOf(settings),
    delivery: {
      ...workerOptions((name) => settings[`notification.delivery.${name}`]),
      worker: settings["hostname"] ?? Deno.hostname(),
      sendTimeoutMs: settings["notification.delivery.send-timeout"],
    },
    predecessorWaitMs: settings["notification.delivery.predecessor-wait"],
    failingUserIdPrefix: settings["notification.delivery.failure-injection.user-id-prefix"],
    retention: {
      enabled: settings["notification.retention.enabled"],
      intervalMs: settings["notification.retention.cleanup-interval"],
      days: settings["notification.retention.retention-days"],
    },
    debug: settings["notification.debug.enabled"],
    consolePeerUrl: settings["notification.console.peer-url"],
  };
}
