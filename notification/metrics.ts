import { outcomes } from "@kenri/shared/inbox/intake.ts";
import type { Settlement } from "@kenri/shared/queue/job.ts";
import {
  counter,
  countersBy,
  delaySeconds,
  gauge,
  histogram,
} from "@kenri/shared/telemetry/metrics.ts";
import type { NotificationRow, Sent } from "./deliveries.ts";

const received = counter(
  "notification_receive_total",
  "messages received: `handled`, `duplicate`, `unreadable` (terminated), `failed` (redelivered)",
  ["outcome"],
);
export const messagesReceived = countersBy(
  outcomes,
  (outcome) => received.labels(outcome),
);

const deliveries = counter(
  "notification_delivery_total",
  "settled sends: `sent`, `retried` (failed and waiting for a retry), `failed` for good",
  ["result"],
);
const delivered = countersBy(["sent", "retried", "failed"], (result) => deliveries.labels(result));

const endToEnd = histogram(
  "notification_delivery_e2e_delay_seconds",
  "time from the change (`occurred_at`) to the send (`sent_at`), by the clocks of the two databases",
  delaySeconds,
).labels();

export function observeDelivered(
  settled: Settlement<NotificationRow, Sent>[],
  owned: Set<string>,
): void {
  const counts = { done: 0, retry: 0, failed: 0, released: 0 };
  for (const settlement of settled) {
    const { row, kind } = settlement;
    if (!owned.has(row.id)) continue;
    counts[kind]++;
    if (kind !== "done") continue;
    const sinceClaim = (settlement.result.sentAt - row.claimedAt) / 1_000;
    endToEnd.observe(Math.max(0, row.content.age_seconds + sinceClaim));
  }
  delivered.sent.inc(counts.done);
  delivered.retried.inc(counts.retry);
  delivered.failed.inc(counts.failed);
}

export const overdueNotifications = gauge(
  "notification_overdue_current",
  "unfinished notifications older than the retention, as of the last clean-up",
);
