// What a replica is told at its start. Leases and waits are short, so that much can happen in little
// time; whatever bounds attempts and statements is as in production.
import { plantedPassword, withPlanted } from "../planted.ts";
import type { ServiceName } from "../services.ts";
import { failingUser } from "./clients.ts";

export const stream = "entitlement-events";
export const subject = "entitlement.events";
export const durable = "notification-entitlement-consumer";

export interface Ports {
  http: number;
  database: number;
  nats: number;
}

export function databaseUrl(port: number, service: ServiceName, user = "postgres"): string {
  return withPlanted(`postgres://${user}@127.0.0.1:${port}/${service}`, user);
}

export const serviceUser = (service: ServiceName): string => `${service}:${plantedPassword}`;

export function settingsOf(service: ServiceName, ports: Ports): Record<string, string> {
  const natsUrl = withPlanted(`nats://127.0.0.1:${ports.nats}`, "kenri");
  const common = { NATS_URL: natsUrl, SHUTDOWN_GRACE: "5s" };
  const database = databaseUrl(ports.database, service, serviceUser(service));
  if (service === "entitlement") {
    return {
      ...common,
      ENTITLEMENT_DATABASE_URL: database,
      ENTITLEMENT_HTTP_PORT: `${ports.http}`,
      ENTITLEMENT_NATS_STREAM: stream,
      ENTITLEMENT_NATS_SUBJECT: subject,
      ENTITLEMENT_OUTBOX_LEASE: "3s",
      ENTITLEMENT_OUTBOX_POLL_INTERVAL: "200ms",
    };
  }
  return {
    ...common,
    NOTIFICATION_DATABASE_URL: database,
    NOTIFICATION_HTTP_PORT: `${ports.http}`,
    NOTIFICATION_NATS_STREAM: stream,
    NOTIFICATION_NATS_SUBJECT: subject,
    NOTIFICATION_NATS_DURABLE: durable,
    NOTIFICATION_NATS_ACK_WAIT: "2s",
    NOTIFICATION_DELIVERY_LEASE: "3s",
    NOTIFICATION_DELIVERY_POLL_INTERVAL: "200ms",
    // Ten sends to a user whose sends fail shall take seconds.
    NOTIFICATION_DELIVERY_BACKOFF_BASE: "50ms",
    NOTIFICATION_DELIVERY_BACKOFF_MIN: "50ms",
    NOTIFICATION_DELIVERY_BACKOFF_MAX: "400ms",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_ENABLED: "true",
    NOTIFICATION_DELIVERY_FAILURE_INJECTION_USER_ID_PREFIX: failingUser,
    // No outage is that long, so the order of sends must hold through all of them.
    NOTIFICATION_DELIVERY_PREDECESSOR_WAIT: "1h",
  };
}
