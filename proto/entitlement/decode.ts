import { fromBinary } from "@bufbuild/protobuf";
import {
  type EntitlementEvent,
  EntitlementEventSchema,
} from "../gen/entitlement/v1/entitlement_event_pb.ts";
import { UnreadableMessage } from "../unreadable.ts";
import { nameOf } from "./event_types.ts";

// The fields of an event under the names of the outbox payload.
export interface EventFields extends Record<string, string | number> {
  event_id: string;
  event_type: string;
  occurred_at: string;
  user_id: string;
  stock_keeping_unit: string;
  source: string;
  source_id: string;
  version: number;
  trace_id: string;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function decodeEvent(body: Uint8Array): EventFields {
  const event = decode(body);
  if (!uuid.test(event.eventId)) throw new UnreadableMessage("event_id is not a UUID");
  const occurred_at = readTime(event);
  const version = Number(event.version);
  if (!Number.isSafeInteger(version)) throw new UnreadableMessage("version is out of range");
  const fields = {
    event_id: event.eventId.toLowerCase(),
    event_type: nameOf(event.eventType),
    occurred_at,
    user_id: event.userId,
    stock_keeping_unit: event.stockKeepingUnit,
    source: event.source,
    source_id: event.sourceId,
    version,
    trace_id: event.traceId,
  };
  if (Object.values(fields).some((value) => typeof value === "string" && value.includes("\0"))) {
    throw new UnreadableMessage("a field contains a NUL, which can't be stored");
  }
  return fields;
}

function decode(body: Uint8Array): EntitlementEvent {
  try {
    return fromBinary(EntitlementEventSchema, body);
  } catch {
    throw new UnreadableMessage("the body is not an EntitlementEvent");
  }
}

const firstSecond = -62_135_596_800n; // of the year 1, the first of a protobuf Timestamp
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
