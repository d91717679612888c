// The notification service with a database and stream names of its own, and access to its tables
// and its consumer.
import type { ConsumerInfo } from "nats";
import { durable, type Place, pointsDurable, requiredSettings } from "../../tools/load/stage.ts";
import { ask } from "../../tools/servers/asking.ts";
import { type FreshPlace, freshPlaceOf } from "./places.ts";
import type { Event, Message } from "./events.ts";
import { publish, publishEvents } from "./events.ts";
import {
  type ServiceProcess,
  type Settings,
  startService,
} from "../../tools/servers/service_process.ts";
import { withNats } from "./streams.ts";
import { until } from "../../tools/servers/wait.ts";

export const freshPlace = (more?: Partial<Place>): Promise<FreshPlace> =>
  freshPlaceOf("notification", more);

export function settingsOf(place: Place): Settings {
  return {
    ...requiredSettings("notification", place),
    NOTIFICATION_DELIVERY_POLL_INTERVAL: "100ms",
  };
}

/** Starts one replica, and waits until it consumes events of both kinds. */
export async function startNotification(
  place: Place,
  more: Settings = {},
): Promise<ServiceProcess> {
  const service = await startService("notification", { ...settingsOf(place), ...more });
  for (const name of [durable, pointsDurable]) {
    await until("it consumes", () => consumerInfo(place, name).then(() => true, () => false));
  }
  return service;
}

export const publishTo = ({ natsUrl, subject }: Place, events: Event[]): Promise<number[]> =>
  publishEvents(natsUrl, subject, events);
export const publishRaw = ({ natsUrl, subject }: Place, messages: Message[]): Promise<number[]> =>
  publish(natsUrl, subject, messages);

export interface Counts {
  processed_events: number;
  notifications: number;
  sent: number;
  notification_dlq: number;
  notification_nats_dlq: number;
}

export async function countsOf({ ownerUrl }: Place): Promise<Counts> {
  const [counts] = await ask<Counts>(
    ownerUrl,
    `select (select count(*)::int from processed_events) as processed_events,
       (select count(*)::int from notifications) as notifications,
       (select count(*)::int from notifications where status = 'SENT') as sent,
       (select count(*)::int from notification_dlq) as notification_dlq,
       (select count(*)::int from notification_nats_dlq) as notification_nats_dlq`,
  );
  return counts as Counts;
}

/** The counts if each of `events` was received and sent once, and nothing went wrong. */
export function allSent(events: number): Counts {
  return {
    processed_events: events,
    notifications: events,
    sent: events,
    notification_dlq: 0,
    notification_nats_dlq: 0,
  };
}

export interface NotificationRow {
  notification_id: string;
  event_id: string;
  user_id: string;
  aggregate_key: string;
  version: number;
  type: string;
  status: "PENDING" | "PROCESSING" | "SENT" | "FAILED";
  attempt_count: number;
  last_error: string | null;
  next_retry_at: Date | null;
  created_at: Date;
  sent_at: Date | null;
}

export function notificationsOf({ ownerUrl }: Pick<Place, "ownerUrl">): Promise<NotificationRow[]> {
  return ask<NotificationRow>(
    ownerUrl,
    `select notification_id, event_id, user_id, aggregate_key, version::int, type, status,
       attempt_count, last_error, next_retry_at, created_at, sent_at
     from notifications
     order by aggregate_key, version`,
  );
}

export function untilSent(place: Place, count: number, withinMs = 30_000): Promise<void> {
  return until(`${count} are sent`, async () => (await countsOf(place)).sent >= count, withinMs);
}

export function consumerInfo(
  { natsUrl, stream }: Pick<Place, "natsUrl" | "stream">,
  name = durable,
): Promise<ConsumerInfo> {
  return withNats(natsUrl, async (connection) => {
    const manager = await connection.jetstreamManager();
    return await manager.consumers.info(stream, name);
  });
}

/** Waits until every message of the stream is delivered and acknowledged. */
export function untilAllAcked(
  place: Place,
  withinMs?: number,
  name: string = durable,
): Promise<void> {
  return until("all is acked", async () => {
    const { num_ack_pending, num_pending } = await consumerInfo(place, name);
    return num_ack_pending === 0 && num_pending === 0;
  }, withinMs);
}

/** How many messages with this outcome the replica has counted. */
export async function outcomesOf({ url }: ServiceProcess, outcome: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const [, count] = new RegExp(`receive_total\\{outcome="${outcome}"\\} (\\d+)`).exec(text) ?? [];
  return Number(count ?? 0);
}

export type AdvisoryKind = "MAX_DELIVERIES" | "MSG_TERMINATED";

/** The stream that keeps the advisories of one kind, with its default name. */
export function advisoryStream(
  { stream }: Place,
  kind: AdvisoryKind,
  name: string = durable,
): string {
  return `${stream}-${name}-${kind.toLowerCase().replace("_", "-")}`;
}

export function advisorySubject({ stream }: Place, kind: AdvisoryKind): string {
  return `$JS.EVENT.ADVISORY.CONSUMER.${kind}.${stream}.${durable}`;
}

/** How many advisories the server has sent about this consumer so far. */
export function advisoriesSent(
  place: Place,
  name: string = durable,
): Promise<Record<AdvisoryKind, number>> {
  return withNats(place.natsUrl, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    const sent = async (kind: AdvisoryKind) =>
      (await streams.info(advisoryStream(place, kind, name))).state.last_seq;
    return {
      MAX_DELIVERIES: await sent("MAX_DELIVERIES"),
      MSG_TERMINATED: await sent("MSG_TERMINATED"),
    };
  });
}
