import type { InboxStreams } from "@kenri/shared/inbox/durables.ts";
import type { Inbox } from "@kenri/shared/inbox/inbox.ts";
import type { Message } from "@kenri/shared/nats/pull.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import type { NotificationRow } from "./deliveries.ts";
import { FanOut } from "./endpoints/fan_out.ts";
import { messagesReceived } from "./metrics.ts";
import {
  type Notification,
  readMatchmakingNotification,
  readNotification,
  readPointsNotification,
} from "./notification.ts";
import { receiveEvents } from "./receive_events.ts";
import { rememberUnnotified } from "./remember_unnotified.ts";
import type { NotificationStreams } from "./stream_settings.ts";

export interface ConsumeParts {
  database: Database;
  toDelivery: Handover<NotificationRow>;
  wakeOrders?(): void; // orders of endpoints wait to be sent
}

export interface ConsumeOptions extends NotificationStreams {
  predecessorWaitMs: number;
}

// How long received events wait for the delivery, so that it can take them over without a claim.
// When it takes longer, because it is slow or works off a backlog, they are stored for it to claim.
const patienceMs = 100;

export const natsDeadLetters = "notification_nats_dlq";

export type EventInboxes = [
  entitlements: Inbox<Notification>,
  points: Inbox<Notification>,
  ...matchmaking: Inbox<Notification>[],
];

// The events of entitlements, of points and, where it is enabled, of matchmaking: nearly each becomes
// a notification.
export function eventInboxes(
  { database, toDelivery, wakeOrders }: ConsumeParts,
  { stream, consumer, advisories, points, matchmaking, predecessorWaitMs }: ConsumeOptions,
): EventInboxes {
  const options = {
    predecessorWaitMs,
    fanOut: new FanOut(),
    ...(wakeOrders ? { wakeOrders } : {}),
  };
  const notify = (received: Notification[]) =>
    toDelivery.writeWithin(
      patienceMs,
      received.length,
      (lease) => receiveEvents(database, received, options, lease),
    );
  const inbox = (streams: InboxStreams): Omit<Inbox<Notification>, "name" | "batch"> => ({
    ...streams,
    decode: decoder(points, matchmaking),
    store: (received) => rememberUnnotified(database, received, notify),
    counts: messagesReceived,
    deadLetters: { database, table: natsDeadLetters },
  });
  return [
    { name: "consumer", batch: "received", ...inbox({ stream, consumer, advisories }) },
    { name: "points consumer", batch: "received points", ...inbox(points), mayWait: true },
    ...(matchmaking.enabled ? [matchmaking] : []).map((streams) => ({
      ...{ name: "matchmaking consumer", batch: "received matchmaking", mayWait: true },
      ...inbox(streams),
    })),
  ];
}

// Every inbox reads the messages of all. A replica of an earlier release may have removed the filter
// of the first consumer, which then receives events of points as well. And copies of dead messages
// are read when their inbox is gone.
function decoder(
  points: InboxStreams,
  matchmaking: InboxStreams,
): (message: Message) => Notification {
  return ({ subject, data }) => {
    if (subject === points.consumer.subject) return readPointsNotification(data);
    if (subject === matchmaking.consumer.subject) return readMatchmakingNotification(data);
    return readNotification(data);
  };
}
