import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { UnreadableMessage } from "./unreadable.ts";

// Reads the fields of an event from the body of its message, as they are stored.

export function readBody<Schema extends DescMessage>(
  schema: Schema,
  body: Uint8Array,
): MessageShape<Schema> {
  try {
    return fromBinary(schema, body);
  } catch {
    throw new UnreadableMessage(`the body is not of the type ${schema.name}`);
  }
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function readEventId({ eventId }: { eventId: string }): string {
  if (!uuid.test(eventId)) throw new UnreadableMessage("event_id is not a UUID");
  return eventId.toLowerCase();
}

export function readNumber(name: string, value: bigint): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new UnreadableMessage(`${name} is out of range`);
}

const firstSecond = -62_135_596_800n; // of the year 1, the first of a protobuf Timestamp
const lastSecond = 253_402_300_799n; // of the year 9999

// To the microsecond, which is what PostgreSQL keeps.
export function readTime({ occurredAt }: { occurredAt?: Timestamp | undefined }): string {
  if (!occurredAt) throw new UnreadableMessage("occurred_at is missing");
  const { seconds, nanos } = occurredAt;
  if (seconds < firstSecond || seconds > lastSecond || nanos < 0 || nanos > 999_999_999) {
    throw new UnreadableMessage("occurred_at is out of range");
  }
  const whole = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19);
  return `${whole}.${String(Math.floor(nanos / 1_000)).padStart(6, "0")}Z`;
}

export function storable<Fields extends Record<string, string | number | string[] | null>>(
  fields: Fields,
): Fields {
  for (const name in fields) {
    const value = fields[name];
    const hasNul = Array.isArray(value)
      ? value.some((one) => one.includes("\0"))
      : typeof value === "string" && value.includes("\0");
    if (hasNul) throw new UnreadableMessage("a field contains a NUL, which can't be stored");
  }
  return fields;
}
