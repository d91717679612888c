import { Counter, Gauge, Registry } from "prom-client";

export const metrics = new Registry();

function counter<Label extends string>(
  name: string,
  help: string,
  labelNames: Label[],
): Counter<Label> {
  return new Counter({ name, help, labelNames, registers: [metrics] });
}

export const workerClaimed = counter("kenri_worker_claimed_total", "Rows claimed", ["worker"]);
export const workerTakenOver = counter(
  "kenri_worker_lease_expired_total",
  "Rows claimed because the lease of another worker had run out",
  ["worker"],
);
export const workerLeaseLost = counter(
  "kenri_worker_lease_lost_total",
  "Settles that changed nothing, because the lease was lost",
  ["worker"],
);
export const workerSettled = counter("kenri_worker_settled_total", "Rows settled, by outcome", [
  "worker",
  "outcome",
]);

export const messagesReceived = counter("notification_receive_total", "Messages, by outcome", [
  "outcome",
]);

export const overdueNotifications = new Gauge({
  name: "notification_overdue_current",
  help: "Notifications older than the retention that are not finished, at the last clean-up",
  registers: [metrics],
});

export const eventsChecked = counter(
  "entitlement_reconcile_checked_total",
  "Events that were looked for at the notification service, by what was found",
  ["state"],
);
export const eventsMended = counter(
  "entitlement_reconcile_mended_total",
  "Events put back to be published, because they were not received",
  [],
);
export const unreceivedEvents = new Gauge({
  name: "entitlement_unreceived_current",
  help: "Events known not to be received, at the last reconciliation",
  labelNames: ["state"],
  registers: [metrics],
});
export const provenUntil = new Gauge({
  name: "entitlement_proven_until_timestamp_seconds",
  help: "Until when all events are known to be received, but those that are counted as unreceived",
  registers: [metrics],
});
