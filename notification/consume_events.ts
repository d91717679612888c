import type { InboxStreams } from "@kenri/shared/inbox/durables.ts";
import type { Inbox } from "@kenri/shared/inbox/inbox.ts";
import type { Message } from "@kenri/shared/nats/pull.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import type { NotificationRow } from "./deliveries.ts";
import { FanOut } from "./endpoints/fan_out.ts";
import { messagesReceived } from "./metrics.ts";
import { type Notification, readNotification, readPointsNotification } from "./notification.ts";
import { receiveEvents } from "./receive_events.ts";
import type { NotificationStreams } from "./stream_settings.ts";

export interface ConsumeParts {
  database: Database;
  toDelivery: Handover<NotificationRow>;
  wakeOrders?(): void; // orders of endpoints wait to be sent
}

export interface ConsumeOptions extends NotificationStreams {
  predecessorWaitMs: number;
}

export const natsDeadLetters = "notification_nats_dlq";

export type EventInboxes = [entitlements: Inbox<Notification>, points: Inbox<Notification>];

// The events of entitlements and those of points: each becomes a notification.
export function eventInboxes(
  { database, toDelivery, wakeOrders }: ConsumeParts,
  { stream, consumer, advisories, points, predecessorWaitMs }: ConsumeOptions,
): EventInboxes {
  const options = {
    predecessorWaitMs,
    fanOut: new FanOut(),
    ...(wakeOrders ? { wakeOrders } : {}),
  };
  const inbox = (streams: InboxStreams): Omit<Inbox<Notification>, "name" | "batch"> => ({
    ...streams,
    decode: decoder(points),
    store: (received) =>
      toDelivery.write(
        received.length,
        (lease) => receiveEvents(database, received, options, lease),
      ),
    counts: messagesReceived,
    deadLetters: { database, table: natsDeadLetters },
  });
  return [
    { name: "consumer", batch: "received", ...inbox({ stream, consumer, advisories }) },
    { name: "points consumer", batch: "received points", ...inbox(points), mayWait: true },
  ];
}

// A replica of an earlier release may have removed the filter of the first consumer, which then
// receives events of points as well.
function decoder({ consumer }: InboxStreams): (message: Message) => Notification {
  return ({ subject, data }) =>
    subject === consumer.subject ? readPointsNotification(data) : readNotification(data);
}
