// Events as the relay would publish them, and messages that nobody should publish.
import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { headers as createHeaders } from "nats";
import {
  EntitlementEventSchema,
  EntitlementEventType,
} from "../../proto/gen/entitlement/v1/entitlement_event_pb.ts";
import { withNats } from "./streams.ts";

export interface Event {
  eventId: string;
  eventType: EntitlementEventType;
  occurredAt: Date;
  userId: string;
  stockKeepingUnit: string;
  source: string;
  sourceId: string;
  version: number;
  traceId: string;
}

export interface Message {
  body: Uint8Array;
  headers?: Record<string, string>;
}

export function eventOf(fields: Partial<Event> = {}): Event {
  return {
    eventId: crypto.randomUUID(),
    eventType: EntitlementEventType.GRANTED,
    occurredAt: new Date("2026-01-02T03:04:05.678Z"),
    userId: "ann",
    stockKeepingUnit: "book",
    source: "purchase",
    sourceId: "p-1",
    version: 1,
    traceId: "0af7651916cd43dd8448eb211c80319c",
    ...fields,
  };
}

/** Versions 1 to `versions` for each user, in the order in which concurrent changes write them. */
export function eventsOf({ users, versions }: { users: number; versions: number }): Event[] {
  return Array.from(
    { length: users * versions },
    (_, i) => eventOf({ userId: `user-${i % users}`, version: Math.floor(i / users) + 1 }),
  );
}

export function bodyOf({ occurredAt, version, ...event }: Event): Uint8Array {
  const time = { occurredAt: timestampFromDate(occurredAt), version: BigInt(version) };
  return toBinary(EntitlementEventSchema, create(EntitlementEventSchema, { ...event, ...time }));
}

/** The message of an event, without a Nats-Msg-Id, so that the stream stores the same event twice. */
export function messageOf(event: Partial<Event> = {}): Message {
  return { body: bodyOf(eventOf(event)) };
}

/** Returns the sequences of the messages in the stream. */
export function publish(url: string, subject: string, messages: Message[]): Promise<number[]> {
  return withNats(url, async (connection) => {
    const stream = connection.jetstream();
    const acks = messages.map(async ({ body, headers = {} }) => {
      const natsHeaders = createHeaders();
      for (const [name, value] of Object.entries(headers)) natsHeaders.set(name, value);
      return (await stream.publish(subject, body, { headers: natsHeaders })).seq;
    });
    return await Promise.all(acks);
  });
}

export function publishEvents(url: string, subject: string, events: Event[]): Promise<number[]> {
  return publish(
    url,
    subject,
    events.map((event) => ({ body: bodyOf(event), headers: { "Nats-Msg-Id": event.eventId } })),
  );
}

/** A user_id that PostgreSQL refuses: it is too long, and random, so it can't be compressed. */
export function tooLongForAnIndex(): string {
  return crypto.getRandomValues(new Uint8Array(6_000)).toHex();
}
