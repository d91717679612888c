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
