import { deadMessageTable } from "@kenri/shared/inbox/dead_messages.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import { queueFigures, type QueueGauges } from "@kenri/shared/operators/backlog.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { collectedGauge, type Figure } from "@kenri/shared/telemetry/collected.ts";
import type { ConsumerInfo } from "nats";
import { natsDeadLetters } from "./consume_events.ts";
import { notificationDlq } from "./dead_letters/dead_deliveries.ts";
import { notifications } from "./deliveries.ts";

// Metrics of what waits in the stream and to be sent, and of the dead letters.

const deadLetters = collectedGauge(
  "notification_dlq_current",
  "dead letters, counted up to 100,000 in each layer",
  ["layer"],
);

const deliveries: QueueGauges = {
  table: notifications,
  waiting: collectedGauge(
    "notification_backlog_current",
    "notifications that wait to be sent, counted up to 100,000",
  ),
  ageSeconds: collectedGauge(
    "notification_backlog_age_seconds",
    "time since the oldest waiting notification was received; 0 when none waits",
  ),
  dead: [notificationDlq, deadMessageTable(natsDeadLetters)].map((table) => ({
    table,
    gauge: deadLetters,
    labels: { layer: table.layer },
  })),
};

export function backlogFigures(database: Database): Promise<Figure[]> {
  return queueFigures(database, deliveries);
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
