import {
  count,
  duration,
  durations,
  encryptionKeys,
  flag,
  maxTimerMs,
  number,
  secretKeys,
  serverUrl,
} from "@kenri/shared/process/setting_kinds.ts";
import { prefixed } from "@kenri/shared/process/settings.ts";
import type { Backoff } from "@kenri/shared/queue/backoff.ts";
import { z } from "zod";

// The settings of orders, of endpoints and of the sender.

const sendSettings = (
  { maxAttempts, backoff, timeout }: { maxAttempts: string; backoff: string; timeout: string },
) => ({
  "max-attempts": count().prefault(maxAttempts).describe(
    "Attempts before an order is `ABORTED` and becomes a dead letter",
  ),
  "backoff": durations().prefault(backoff).describe(
    "Pauses after the first failed attempt, the second and so on; the last one repeats",
  ),
  "send-timeout": duration(maxTimerMs).prefault(timeout).describe("Time limit of one send"),
});

export const orderSettings = prefixed("notification", {
  "orders.enabled": flag().prefault("true").describe("Whether this replica sends orders"),
  "orders.batch-size": number({ min: 1, max: 5_000 }).prefault("32").describe("Rows per claim"),
  "orders.poll-interval": duration(maxTimerMs).prefault("500ms").describe(
    "Time between two claims; a new row wakes the worker of its process at once",
  ),
  "orders.lease": duration(maxTimerMs).prefault("120s").describe(
    "How long a claim lasts without a heartbeat",
  ),
  ...prefixed(
    "orders",
    sendSettings({ maxAttempts: "6", backoff: "5s,10s,20s,40s,80s,160s", timeout: "2500ms" }),
  ),
  "orders.ledger-ttl": duration().prefault("400d").describe("How long the ledger is kept"),
  ...prefixed(
    "webhooks",
    sendSettings({
      maxAttempts: "10",
      backoff: "5s,5m,30m,2h,5h,10h,14h,20h,24h",
      timeout: "15s",
    }),
  ),
  "endpoints.at-once": number({ min: 1, max: 1_000 }).prefault("4").describe(
    "Sends at once to one destination; an endpoint may have its own number",
  ),
  "endpoints.failures-to-park": count().prefault("5").describe(
    "Failures in a row after which the orders of an endpoint are parked",
  ),
  "endpoints.probe-min": duration(maxTimerMs).prefault("5s").describe(
    "Time to the first probe of an endpoint that fails; it doubles with each further one",
  ),
  "endpoints.probe-max": duration(maxTimerMs).prefault("5m").describe(
    "Longest time between two probes",
  ),
  "endpoints.disable-after": duration().prefault("5d").describe(
    "How long an endpoint may fail before it is `DISABLED`",
  ),
  "endpoints.keep": duration().prefault("30d").describe("How long parked orders are kept"),
  "endpoints.secret-key": encryptionKeys().optional().describe(
    "32 random bytes, base64url: encrypts the secrets of endpoints. To rotate it, give all replicas `old,new` and then `new,old`; the old key is needed until each endpoint has rotated its secret",
  ),
  "endpoints.max-per-caller": count().prefault("50").describe("Endpoints of one caller"),
  "sender.url": senderUrl().optional().describe(
    "`http://host:port` of the sender; without it nothing is sent",
  ),
  "sender.token": secretKeys().optional().describe(
    "The token of the sender, the same as its `sender.token`",
  ),
});

export interface SendOptions {
  maxAttempts: number;
  backoff: Backoff;
  sendTimeoutMs: number;
}

export interface OrderOptions {
  enabled: boolean;
  worker: string; // name in the leases, for people to read
  batchSize: number;
  pollIntervalMs: number;
  leaseMs: number;
  plain: SendOptions;
  webhooks: SendOptions;
  ledgerTtlMs: number;
}

export interface EndpointOptions {
  atOnce: number;
  failuresToPark: number;
  probeMinMs: number;
  probeMaxMs: number;
  disableAfterMs: number;
  keepMs: number;
  secretKeys: Uint8Array[] | undefined; // the first encrypts
  maxPerCaller: number;
}

export interface SenderAddress {
  url: string;
  token: string;
}

export interface OrdersConfig {
  orders: OrderOptions;
  endpoints: EndpointOptions;
  sender: SenderAddress | undefined;
}

type Settings = z.output<z.ZodObject<typeof orderSettings>>;

export function ordersConfig(
  settings: Settings & { hostname?: string | undefined },
): OrdersConfig {
  const url = settings["notification.sender.url"];
  const [token] = settings["notification.sender.token"] ?? [];
  return {
    orders: {
      enabled: settings["notification.orders.enabled"],
      worker: settings["hostname"] ?? Deno.hostname(),
      batchSize: settings["notification.orders.batch-size"],
      pollIntervalMs: settings["notification.orders.poll-interval"],
      leaseMs: settings["notification.orders.lease"],
      plain: {
        maxAttempts: settings["notification.orders.max-attempts"],
        backoff: { delaysMs: settings["notification.orders.backoff"] },
        sendTimeoutMs: settings["notification.orders.send-timeout"],
      },
      webhooks: {
        maxAttempts: settings["notification.webhooks.max-attempts"],
        backoff: { delaysMs: settings["notification.webhooks.backoff"] },
        sendTimeoutMs: settings["notification.webhooks.send-timeout"],
      },
      ledgerTtlMs: settings["notification.orders.ledger-ttl"],
    },
    endpoints: {
      atOnce: settings["notification.endpoints.at-once"],
      failuresToPark: settings["notification.endpoints.failures-to-park"],
      probeMinMs: settings["notification.endpoints.probe-min"],
      probeMaxMs: settings["notification.endpoints.probe-max"],
      disableAfterMs: settings["notification.endpoints.disable-after"],
      keepMs: settings["notification.endpoints.keep"],
      secretKeys: settings["notification.endpoints.secret-key"],
      maxPerCaller: settings["notification.endpoints.max-per-caller"],
    },
    sender: url !== undefined && token !== undefined ? { url, token } : undefined,
  };
}

// The sender answers nobody without its token.
export const senderIsComplete = z.refine<Record<string, unknown>>(
  (value) =>
    value["notification.sender.url"] === undefined ||
    value["notification.sender.token"] !== undefined,
  {
    path: ["notification.sender.token"],
    message: "is required for notification.sender.url",
    when: () => true,
  },
);

// The token is what the sender asks for; nothing would use a user or a password.
function senderUrl(): z.ZodString {
  return serverUrl("http:", "https:").refine((value) => {
    const { username, password } = URL.parse(value) ?? {};
    return `${username}${password}` === "";
  }, "must be a url such as http://127.0.0.1:8084, without a user or a password");
}
