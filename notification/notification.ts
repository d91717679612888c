import { fromBinary } from "@bufbuild/protobuf";
import { aggregateKeyOf } from "@kenri/proto/aggregate_key";
import {
  type EntitlementEvent,
  EntitlementEventSchema,
  EntitlementEventType,
} from "@kenri/proto/entitlement_event";

// The noun of this service: what one event becomes for its user, and how it is read from a message.

export interface Notification {
  event_id: string;
  user_id: string;
  aggregate_key: string;
  version: number;
  type: string;
  occurred_at: string;
  payload: Record<string, string | number>;
  traceparent?: string; // while traces are written
}

// The message can't become a notification, however often it is delivered.
export class UnreadableMessage extends Error {
  override readonly name = "UnreadableMessage";
}

const typeNames = new Map<number, string>([
  [EntitlementEventType.GRANTED, "EntitlementGranted"],
  [EntitlementEventType.REVOKED, "EntitlementRevoked"],
]);
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function readNotification(body: Uint8Array): Notification {
  const event = decode(body);
  if (!uuid.test(event.eventId)) throw new UnreadableMessage("event_id is not a UUID");
  const event_id = event.eventId.toLowerCase();
  const occurred_at = readTime(event);
  // A type of a newer schema is kept by its number, to be understood later.
  const type = typeNames.get(event.eventType) ?? `${event.eventType}`;
  const version = Number(event.version);
  if (!Number.isSafeInteger(version)) throw new UnreadableMessage("version is out of range");
  const payload = {
    event_id,
    event_type: type,
    occurred_at,
    user_id: event.userId,
    stock_keeping_unit: event.stockKeepingUnit,
    source: event.source,
    source_id: event.sourceId,
    version,
    trace_id: event.traceId,
  };
  if (Object.values(payload).some((value) => typeof value === "string" && value.includes("\0"))) {
    throw new UnreadableMessage("a field holds a NUL, which can't be stored");
  }
  return {
    event_id,
    user_id: event.userId,
    aggregate_key: aggregateKeyOf(event.userId, event.stockKeepingUnit),
    version,
    type,
    occurred_at,
    payload,
  };
}

function decode(body: Uint8Array): EntitlementEvent {
  try {
    return fromBinary(EntitlementEventSchema, body);
  } catch {
    throw new UnreadableMessage("the body is not an EntitlementEvent");
  }
}

const firstSecond = -62_135_596_800n; // of the year 1, as protobuf's Timestamp has it
const lastSecond = 253_402_300_799n; // of the year 9999

// To the microsecond, which is what PostgreSQL keeps.
function readTime({ occurredAt }: EntitlementEvent): string {
  if (!occurredAt) throw new UnreadableMessage("occurred_at is missing");
  const { seconds, nanos } = occurredAt;
  if (seconds < firstSecond || seconds > lastSecond || nanos < 0 || nanos > 999_999_999) {
    throw new UnreadableMessage("occurred_at is out of range");
  }
  const whole = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19);
  return `${whole}.${String(Math.floor(nanos / 1_000)).padStart(6, "0")}Z`;
}
