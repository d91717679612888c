// Delivery in the process of the test, with a channel that the test provides.
import type { Channel, Send } from "../../notification/channels/channel.ts";
import {
  deliverNotifications,
  type DeliveryOptions,
} from "../../notification/deliver_notifications.ts";
import { readNotification } from "../../notification/notification.ts";
import { receiveEvents } from "../../notification/receive_events.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { Handover } from "../../shared/queue/handover.ts";
import { bodyOf, type Event } from "./events.ts";
import { type NotificationRow, notificationsOf } from "./notification.ts";
import type { Place } from "../../tools/load/stage.ts";
import { collectingLog } from "./relays.ts";
import { until } from "../../tools/servers/wait.ts";

export interface RunningDelivery extends AsyncDisposable {
  log: string[];
  stop(): Promise<void>;
}

const quick: DeliveryOptions = {
  worker: "test",
  batchSize: 50,
  leaseMs: 30_000,
  pollIntervalMs: 20,
  maxAttempts: 3,
  backoff: { baseMs: 50, maxMs: 50, minMs: 50, jitterMin: 1, jitterMax: 1 },
  sendTimeoutMs: 10_000,
};

export function startDelivery(
  { serviceUrl }: Pick<Place, "serviceUrl">,
  send: Channel["send"],
  options: Partial<DeliveryOptions> = {},
): RunningDelivery {
  const { log, lines } = collectingLog();
  const database = openDatabase(serviceUrl, "delivery");
  const [stopping, abandon] = [new AbortController(), new AbortController()];
  const parts = {
    database,
    channel: { send },
    toDelivery: new Handover(),
    log,
    abandon: abandon.signal,
  };
  const running = deliverNotifications(parts, { ...quick, ...options }, stopping.signal);
  let stopped: Promise<void> | undefined;
  const stop = () =>
    stopped ??= (async () => {
      stopping.abort();
      const grace = setTimeout(() => abandon.abort(), 1_000);
      await running;
      clearTimeout(grace);
      await database.end();
    })();
  return { log: lines, stop, [Symbol.asyncDispose]: stop };
}

/** A channel that accepts everything and remembers it. */
export function collecting(): { send: Channel["send"]; sent: Send[] } {
  const sent: Send[] = [];
  return {
    sent,
    send: (one) => {
      sent.push(one);
      return Promise.resolve();
    },
  };
}

/** Stores all batches at the same time, each as one replica would. */
export async function receive(
  { serviceUrl }: Pick<Place, "serviceUrl">,
  batches: Event[][],
  predecessorWaitMs = 3_600_000,
): Promise<boolean[][]> {
  const database = openDatabase(serviceUrl, "receive");
  try {
    return await Promise.all(
      batches.map(async (events) => {
        const received = events.map((event) => readNotification(bodyOf(event)));
        return (await receiveEvents(database, received, { predecessorWaitMs })).result;
      }),
    );
  } finally {
    await database.end();
  }
}

export async function untilAllAre(
  place: Pick<Place, "ownerUrl">,
  ...statuses: NotificationRow["status"][]
): Promise<NotificationRow[]> {
  let rows: NotificationRow[] = [];
  await until(`all are ${statuses.join(" or ")}`, async () => {
    rows = await notificationsOf(place);
    return rows.every(({ status }) => statuses.includes(status));
  });
  return rows;
}
