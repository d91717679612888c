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
} from "@kenri/shared/process/service_settings.ts";
import { count, duration, flag, maxTimerMs } from "@kenri/shared/process/setting_kinds.ts";
import { environment, notSame, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { z } from "zod";
import type { DeliveryOptions } from "./deliver_notifications.ts";
import { program } from "./program.ts";
import type { RetentionOptions } from "./retention.ts";
import {
  type OrdersConfig,
  ordersConfig,
  orderSettings,
  senderIsComplete,
} from "./orders/settings.ts";
import { type NotificationStreams, streamSettings, streamsOf } from "./stream_settings.ts";

const injection = "notification.delivery.failure-injection.enabled";
const injectionPrefix = "notification.delivery.failure-injection.user-id-prefix";

// A prefix alone does nothing, and an empty one would fail every user, so both are mistakes. They
// are reported also while other settings are wrong.
const injectionNeedsPrefix = z.refine<Record<string, unknown>>(
  (value) => value[injection] !== true || value[injectionPrefix] !== "",
  {
    path: [injectionPrefix],
    message: "must not be empty while failure injection is enabled",
    when: () => true,
  },
);
const prefixNeedsInjection = z.refine<Record<string, unknown>>(
  (value) => value[injection] !== false || value[injectionPrefix] === "",
  {
    path: [injection],
    message: "must be true for a user-id-prefix to have an effect",
    when: () => true,
  },
);

export const schema = z.object({
  ...database.settings("notification"),
  ...retention.settings("notification"),
  ...worker.settings("notification.delivery"),
  ...prefixed("notification", {
    "delivery.send-timeout": duration(maxTimerMs).prefault("10s").describe(
      "Time limit of one send",
    ),
    "delivery.predecessor-wait": duration().prefault("30s").describe(
      "How long a version waits for the version before it to arrive",
    ),
    "delivery.failure-injection.enabled": flag().prefault("false").describe(
      "Makes sends fail on purpose, to try out retries",
    ),
    "delivery.failure-injection.user-id-prefix": z.string().prefault("").describe(
      "Users whose sends fail; refused unless failure injection is enabled",
    ),
    "retention.retention-days": count().prefault("30").describe(
      "Days to keep finished notifications and orders, and the ids of received events",
    ),
  }),
  ...orderSettings,
  ...streamSettings,
  ...nats.settings(),
  ...service.settings("notification", program.port),
  ...consoles.settings("notification"),
}).check(
  ...database.checks("notification"),
  ...nats.checks(),
  ...worker.checks("notification.delivery"),
  ...service.checks("notification"),
  injectionNeedsPrefix,
  prefixNeedsInjection,
  senderIsComplete,
  notSame("notification.nats.points.subject", "notification.nats.subject"),
  notSame("notification.nats.points.durable", "notification.nats.durable"),
  notSame("notification.matchmaking.stream", "notification.nats.stream"),
  notSame("notification.matchmaking.subject", "notification.nats.subject"),
  notSame("notification.matchmaking.subject", "notification.nats.points.subject"),
);

export interface Config
  extends
    ServiceConfig,
    ConsoleConfig,
    DatabaseConfig,
    NatsConfig,
    NotificationStreams,
    OrdersConfig {
  delivery: DeliveryOptions;
  predecessorWaitMs: number;
  failingUserIdPrefix: string;
  retention: RetentionConfig & RetentionOptions;
}

export function readConfig(
  read: (name: string) => string | undefined = environment,
): Config {
  const settings = parseSettings(schema, read);
  return {
    ...service.config("notification", settings),
    ...consoles.config(settings["notification.console.peer-url"]),
    ...database.config("notification", settings),
    ...nats.config(settings),
    ...streamsOf(settings),
    delivery: {
      ...worker.config("notification.delivery", settings),
      sendTimeoutMs: settings["notification.delivery.send-timeout"],
    },
    ...ordersConfig(settings),
    predecessorWaitMs: settings["notification.delivery.predecessor-wait"],
    failingUserIdPrefix: settings["notification.delivery.failure-injection.user-id-prefix"],
    retention: {
      ...retention.config("notification", settings),
      days: settings["notification.retention.retention-days"],
      ledgerTtlMs: settings["notification.orders.ledger-ttl"],
    },
  };
}
