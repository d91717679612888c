import type { Settlement } from "@kenri/shared/process/job.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import {
  counter,
  countersBy,
  delaySeconds,
  gauge,
  histogram,
} from "@kenri/shared/telemetry/metrics.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { collectedGauge, type Figure } from "@kenri/shared/telemetry/scrape.ts";
import type { NotificationRow, Sent } from "./deliveries.ts";

const received = counter(
  "notification_receive_total",
  "messages of the stream: `handled`, `duplicate`, `unreadable` (never again), `failed` (nak)",
  ["outcome"],
);
export const messagesReceived = countersBy(
  ["handled", "duplicate", "unreadable", "failed"],
  (outcome) => received.labels(outcome),
);

const deliveries = counter(
  "notification_delivery_total",
  "sends that were settled: `sent`, `retried` (failed, to be tried again), `failed` for good",
  ["result"],
);
const delivered = countersBy(["sent", "retried", "failed"], (result) => deliveries.labels(result));

const endToEnd = histogram(
  "notification_delivery_e2e_delay_seconds",
  "from the change (`occurred_at`) to the send (`sent_at`), by the clocks of the two databases",
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
  "notifications older than the retention that are not finished, at the last clean-up",
);

const backlog = collectedGauge(
  "notification_backlog_current",
  "notifications that wait to be sent, counted up to 100,000",
);
const backlogAge = collectedGauge(
  "notification_backlog_age_seconds",
  "time since the oldest of them was received; 0 when none waits",
);
const dead = collectedGauge(
  "notification_dlq_current",
  "dead letters, counted up to 100,000 in each layer",
  ["layer"],
);
const countUpTo = 100_000;

// Each by the index that has nothing else in it.
export async function tableFigures(database: Database): Promise<Figure[]> {
  const [found] = await query<
    { backlog: number; age: number; deliveries: number; advisories: number }
  >(
    database,
    `select
       (select count(*) from (
          select from notifications where unfinished
          order by created_at, version limit $1) as waiting) as backlog,
       coalesce((
         select extract(epoch from now() - created_at)::float8
         from notifications where unfinished order by created_at, version limit 1), 0) as age,
       (select count(*) from (
          select from notification_dlq order by dlq_id limit $1) as dead) as deliveries,
       (select count(*) from (
          select from notification_nats_dlq where operation_id is null
          order by dlq_id limit $1) as dead) as advisories`,
    [countUpTo],
  );
  if (!found) return [];
  return [
    { gauge: backlog, value: found.backlog },
    { gauge: backlogAge, value: Math.max(0, found.age) },
    { gauge: dead, labels: { layer: "delivery" }, value: found.deliveries },
    { gauge: dead, labels: { layer: "advisory" }, value: found.advisories },
  ];
}

const pending = collectedGauge(
  "notification_stream_pending_current",
  "messages of the stream that were not given out yet; left out while NATS is away",
);

export async function streamFigures(
  link: NatsLink,
  stream: string,
  durable: string,
): Promise<Figure[]> {
  const manager = await link.current?.connection.jetstreamManager();
  const info = await manager?.consumers.info(stream, durable);
  return info ? [{ gauge: pending, value: info.num_pending }] : [];
}
