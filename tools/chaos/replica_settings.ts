// The settings of a replica. Leases and waits are short, so that much can happen in little time; what
// bounds attempts and statements is as in production.
import { type FlowService, pointsSubjectOf, requiredSettings } from "../load/stage.ts";
import { plantedPassword, withPlanted } from "../planted.ts";
import { failingUser } from "./clients.ts";

export const stream = "entitlement-events";
export const subject = "entitlement.events";
export const pointsSubject = pointsSubjectOf({ stream });

export interface Ports {
  http: number;
  database: number;
  nats: number;
}

export function databaseUrl(port: number, service: string, user = "postgres"): string {
  return withPlanted(`postgres://${user}@127.0.0.1:${port}/${service}`, user);
}

/** The longest lease of all that replicas have. */
export const leaseMs = 3_000;

export const serviceUser = (service: string): string => `${service}:${plantedPassword}`;

export function settingsOf(service: FlowService, ports: Ports): Record<string, string> {
  const natsUrl = withPlanted(`nats://127.0.0.1:${ports.nats}`, "kenri");
  const serviceUrl = databaseUrl(ports.database, service, serviceUser(service));
  const common = {
    ...requiredSettings(service, { natsUrl, serviceUrl, stream, subject }),
    SHUTDOWN_GRACE: "5s",
    [`${service.toUpperCase()}_HTTP_PORT`]: `${ports.http}`,
  };
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
  };
}
