import type { NatsLink } from "@kenri/shared/nats/link.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { countBacklog } from "@kenri/shared/queue/backlog.ts";
import { collectedGauge, type Figure } from "@kenri/shared/telemetry/collected.ts";
import type { ConsumerInfo } from "nats";
import { notifications } from "./deliveries.ts";

// Metrics of what waits in the stream and to be sent, and of the dead letters.

// Each reads an index that contains nothing else.
const deadColumns = [
  `(select count(*) from (
          select from notification_dlq order by dlq_id limit $1) as found) as dead_deliveries`,
  `(select count(*) from (
          select from notification_nats_dlq where operation_id is null
          order by dlq_id limit $1) as found) as dead_advisories`,
];

const backlogSize = collectedGauge(
  "notification_backlog_current",
  "notifications that wait to be sent, counted up to 100,000",
);
const backlogAge = collectedGauge(
  "notification_backlog_age_seconds",
  "time since the oldest waiting notification was received; 0 when none waits",
);
const deadLetters = collectedGauge(
  "notification_dlq_current",
  "dead letters, counted up to 100,000 in each layer",
  ["layer"],
);

export async function backlogFigures(database: Database): Promise<Figure[]> {
  const backlog = await countBacklog<{ dead_deliveries: number; dead_advisories: number }>(
    database,
    notifications,
    100_000,
    deadColumns,
  );
  return [
    { gauge: backlogSize, value: backlog.waiting },
    { gauge: backlogAge, value: Math.max(0, backlog.oldest_waiting_seconds ?? 0) },
    { gauge: deadLetters, labels: { layer: "delivery" }, value: backlog.dead_deliveries },
    { gauge: deadLetters, labels: { layer: "advisory" }, value: backlog.dead_advisories },
  ];
}

export interface ConsumerName {
  stream: string;
  durable: string;
}

// Undefined without a connection to NATS.
export async function consumerInfo(
  link: NatsLink,
  { stream, durable }: ConsumerName,
): Promise<ConsumerInfo | undefined> {
  const manager = await link.current?.connection.jetstreamManager();
  return await manager?.consumers.info(stream, durable);
}

const pending = collectedGauge(
  "notification_stream_pending_current",
  "messages of the stream that were not delivered to the consumer yet; absent while NATS is unavailable",
);

export async function streamFigures(link: NatsLink, consumer: ConsumerName): Promise<Figure[]> {
  const info = await consumerInfo(link, consumer);
  return info ? [{ gauge: pending, value: info.num_pending }] : [];
}
