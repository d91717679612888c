// The settings of a replica. Leases and waits are short, so that much can happen in little time; what
// bounds attempts and statements is as in production.
import { type FlowService, pointsSubjectOf, requiredSettings } from "../load/stage.ts";
import { plantedPassword, plantedSecretKey, withPlanted } from "../planted.ts";
import { failingUser } from "./clients.ts";
import type { LinkedServer } from "./system.ts";

export const stream = "entitlement-events";
export const subject = "entitlement.events";
export const pointsSubject = pointsSubjectOf({ stream });

export type KenriService = FlowService | "sender" | "account" | "gateway" | "matchmaking";

export const accountStream = "account-events";
export const matchStream = "matchmaking-events";
export const matchDurable = "notification-matchmaking-consumer";
/** Where browsers would reach the gateways. */
export const gatewayUrl = "http://127.0.0.1:8000";

export interface Ports {
  http: number;
  to(server: LinkedServer): number;
}

export function databaseUrl(port: number, service: string, user = "postgres"): string {
  return withPlanted(`postgres://${user}@127.0.0.1:${port}/${service}`, user);
}

/** The longest lease of all that replicas have. */
export const leaseMs = 3_000;

export const serviceUser = (service: string): string => `${service}:${plantedPassword}`;

const senderToken = plantedPassword;

export function settingsOf(service: KenriService, ports: Ports): Record<string, string> {
  const own = {
    SHUTDOWN_GRACE: "5s",
    [`${service.toUpperCase()}_HTTP_PORT`]: `${ports.http}`,
  };
  if (service === "sender") {
    return {
      ...own,
      SENDER_TOKEN: senderToken,
      SENDER_ALLOW_ADDRESSES: "127.0.0.1",
      SENDER_PLAIN_HTTP: "true",
    };
  }
  const natsUrl = withPlanted(`nats://127.0.0.1:${ports.to("nats")}`, "kenri");
  if (service === "gateway") return { ...own, ...gatewaySettings(ports), NATS_URL: natsUrl };
  if (service === "matchmaking") {
    return { ...own, ...matchSettings, NATS_URL: natsUrl, REDIS_URL: redisUrl(ports.to("redis")) };
  }
  const serviceUrl = databaseUrl(ports.to("database"), service, serviceUser(service));
  if (service === "account") {
    return {
      ...own,
      ACCOUNT_DATABASE_URL: serviceUrl,
      ACCOUNT_NATS_STREAM: accountStream,
      ACCOUNT_OUTBOX_LEASE: `${leaseMs}ms`,
      ACCOUNT_OUTBOX_POLL_INTERVAL: "200ms",
      NATS_URL: natsUrl,
    };
  }
  const common = { ...own, ...requiredSettings(service, { natsUrl, serviceUrl, stream, subject }) };
  if (service === "entitlement") {
    return {
      ...common,
      ENTITLEMENT_OUTBOX_LEASE: `${leaseMs}ms`,
      ENTITLEMENT_OUTBOX_POLL_INTERVAL: "200ms",
      ENTITLEMENT_RESERVATIONS_LEASE: `${leaseMs}ms`,
      ENTITLEMENT_RESERVATIONS_POLL_INTERVAL: "200ms",
    };
  }
  return {
    ...common,
    NOTIFICATION_NATS_ACK_WAIT: "2s",
    NOTIFICATION_DELIVERY_LEASE: `${leaseMs}ms`,
    NOTIFICATION_DELIVERY_POLL_INTERVAL: "200ms",
    // Ten sends to a user whose sends fail shall take seconds.
    NOTIFICATION_DELIVERY_BACKOFF_BASE: "50ms",
    NOTIFICATION_DELIVERY_BACKOFF_MIN: "50ms",
    NOTIFICATION_DELIVERY_BACKOFF_MAX: "400ms",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED: "true",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: failingUser,
    // No outage is that long, so the order of sends must hold through all of them.
    NOTIFICATION_DELIVERY_PREDECESSOR_WAIT: "1h",
    NOTIFICATION_MATCHMAKING_ENABLED: "true",
    ...orderSettings(ports),
  };
}

export const redisUrl = (port: number): string =>
  withPlanted(`redis://127.0.0.1:${port}`, "default");

const matchSettings = {
  MATCHMAKING_OUTBOX_LEASE: `${leaseMs}ms`,
  MATCHMAKING_OUTBOX_POLL_INTERVAL: "200ms",
  MATCHMAKING_TICKET_TTL: "3s",
  // No run is that long, so every ticket can be read, and every key is known, at its end.
  MATCHMAKING_RESULT_TTL: "3h",
  MATCHMAKING_IDEMPOTENCY_TTL: "3h",
};

function gatewaySettings(ports: Ports): Record<string, string> {
  return {
    GATEWAY_PUBLIC_URL: gatewayUrl,
    GATEWAY_ISSUER: "http://127.0.0.1:9", // nobody logs in at it
    GATEWAY_CLIENT_ID: "kenri",
    GATEWAY_SESSION_KEYS: plantedSecretKey,
    // Clocks jump by more than a day, and sessions shall not end by that.
    GATEWAY_SESSION_IDLE: "7d",
    GATEWAY_ACCOUNT_URL: `http://127.0.0.1:${ports.to("account")}`,
    GATEWAY_NATS_STREAM: accountStream,
  };
}

function orderSettings(ports: Ports): Record<string, string> {
  return {
    NOTIFICATION_SENDER_URL: `http://127.0.0.1:${ports.to("sender")}`,
    NOTIFICATION_SENDER_TOKEN: senderToken,
    NOTIFICATION_ENDPOINTS_SECRET_KEY: plantedSecretKey,
    NOTIFICATION_ENDPOINTS_PROBE_MIN: "200ms",
    NOTIFICATION_ENDPOINTS_PROBE_MAX: "1s",
    NOTIFICATION_ORDERS_LEASE: `${leaseMs}ms`,
    NOTIFICATION_ORDERS_POLL_INTERVAL: "200ms",
    NOTIFICATION_WEBHOOKS_BACKOFF: "100ms,200ms,400ms",
    // Long enough for the slowest path, but a receiver that hangs shall not use up the time to heal.
    NOTIFICATION_WEBHOOKS_SEND_TIMEOUT: "2s",
    // Nothing is parked of plain orders, so their attempts must last through every outage.
    NOTIFICATION_ORDERS_BACKOFF: "200ms,400ms,800ms",
    NOTIFICATION_ORDERS_MAX_ATTEMPTS: "1000",
  };
}
