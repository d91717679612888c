import type { Inbox } from "@kenri/shared/inbox/inbox.ts";
import type { InboxStreams } from "@kenri/shared/inbox/durables.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import type { NotificationRow } from "./deliveries.ts";
import { messagesReceived } from "./metrics.ts";
import { type Notification, readNotification } from "./notification.ts";
import { receiveEvents } from "./receive_events.ts";

export interface ConsumeParts {
  database: Database;
  toDelivery: Handover<NotificationRow>;
}

export interface ConsumeOptions extends InboxStreams {
  predecessorWaitMs: number;
}

export const natsDeadLetters = "notification_nats_dlq";

// The events of entitlements: each becomes a notification.
export function eventInbox(
  { database, toDelivery }: ConsumeParts,
  { stream, consumer, advisories, predecessorWaitMs }: ConsumeOptions,
): Inbox<Notification> {
  return {
    name: "consumer",
    batch: "received",
    stream,
    consumer,
    advisories,
    decode: ({ data }) => readNotification(data),
    store: (received) =>
      toDelivery.write(
        received.length,
        (lease) => receiveEvents(database, received, predecessorWaitMs, lease),
      ),
    counts: messagesReceived,
    deadLetters: { database, table: natsDeadLetters },
  };
}
