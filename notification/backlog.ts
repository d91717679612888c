import { deadMessageTable } from "@kenri/shared/inbox/dead_messages.ts";
import type { InboxStreams } from "@kenri/shared/inbox/durables.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import { queueFigures, type QueueGauges } from "@kenri/shared/operators/backlog.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { collectedGauge, type Figure } from "@kenri/shared/telemetry/collected.ts";
import type { ConsumerInfo } from "nats";
import { natsDeadLetters } from "./consume_events.ts";
import { notificationDlq } from "./dead_letters/dead_deliveries.ts";
import { notifications } from "./deliveries.ts";
import { deadOrder } from "./operators/orders/dead_orders.ts";
import { countEndpoints, findParked } from "./operators/orders/parked.ts";
import { orders } from "./orders/orders.ts";

// Metrics of what waits in the stream and to be sent, of what is parked, and of the dead letters.

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

const dueOrders: QueueGauges = {
  table: orders,
  waiting: collectedGauge(
    "kenri_orders_due_current",
    "due orders that wait to be sent, counted up to 100,000",
  ),
  ageSeconds: collectedGauge(
    "kenri_orders_due_age_seconds",
    "time since the order became due that has waited longest; 0 when none waits",
  ),
  dead: [{ table: deadOrder, gauge: deadLetters, labels: { layer: deadOrder.layer } }],
};

const parkedOrders = collectedGauge(
  "kenri_orders_parked",
  "orders that are parked until their endpoint is `ACTIVE`, counted up to 100,000",
);
const parkedAge = collectedGauge(
  "kenri_orders_parked_age_seconds",
  "age of the oldest parked order; 0 when none is parked",
);
const endpoints = collectedGauge("kenri_endpoints", "endpoints by their state", ["state"]);
const parkedAtMost = 100_000;

export async function backlogFigures(database: Database): Promise<Figure[]> {
  const [ofDeliveries, ofOrders, { parked, oldest_parked_seconds }, byState] = await Promise.all([
    queueFigures(database, deliveries),
    queueFigures(database, dueOrders),
    findParked(database, parkedAtMost),
    countEndpoints(database),
  ]);
  return [
    ...ofDeliveries,
    ...ofOrders,
    { gauge: parkedOrders, value: parked },
    { gauge: parkedAge, value: Math.max(0, oldest_parked_seconds ?? 0) },
    ...Object.entries(byState).map(([state, value]) => ({
      gauge: endpoints,
      labels: { state },
      value,
    })),
  ];
}

// Undefined without a connection to NATS, or while the consumer is missing.
export async function consumerInfo(
  link: NatsLink,
  { stream, consumer }: InboxStreams,
): Promise<ConsumerInfo | undefined> {
  const manager = await link.current?.connection.jetstreamManager();
  return await manager?.consumers.info(stream.name, consumer.durable).catch(() => undefined);
}

const pending = collectedGauge(
  "notification_stream_pending_current",
  "messages that were not delivered to the consumer of these events yet: `entitlements`, `points`, `matchmaking` (if it is enabled); absent while NATS is unavailable",
  ["events"],
);

export async function streamFigures(link: NatsLink, inboxes: InboxStreams[]): Promise<Figure[]> {
  const infos = await Promise.all(inboxes.map((inbox) => consumerInfo(link, inbox)));
  return infos.flatMap((info, at) => {
    const labels = { events: ["entitlements", "points", "matchmaking"][at] ?? "" };
    return info ? [{ gauge: pending, labels, value: info.num_pending }] : [];
  });
}
