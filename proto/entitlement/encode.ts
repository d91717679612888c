import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { EntitlementEventSchema } from "../gen/entitlement/v1/entitlement_event_pb.ts";
import { typeOfName } from "./event_types.ts";

// The fields of the event can't be encoded, and a retry does not help.
export class UnreadablePayload extends Error {
  override readonly name = "UnreadablePayload";
}

/** Encodes the body of the message. The fields are those of the payload in the outbox. */
export function encodeEvent(eventId: string, fields: Record<string, unknown>): Uint8Array {
  const text = (name: string) => readText(fields, name);
  const eventType = typeOfName.get(text("event_type"));
  if (eventType === undefined) throw new UnreadablePayload("event_type is unknown");
  return toBinary(
    EntitlementEventSchema,
    create(EntitlementEventSchema, {
      eventId,
      eventType,
      occurredAt: readTime(text("occurred_at")),
      userId: text("user_id"),
      stockKeepingUnit: text("stock_keeping_unit"),
      source: text("source"),
      sourceId: text("source_id"),
      version: readVersion(fields["version"]),
      traceId: text("trace_id"),
    }),
  );
}

function readText(fields: Record<string, unknown>, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw new UnreadablePayload(`${name} is not a string`);
  return value;
}

// RFC 3339, with the years that a Timestamp allows.
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

// A Date only has milliseconds, so the microseconds that PostgreSQL wrote are read from the text.
function readTime(written: string): { seconds: bigint; nanos: number } {
  const date = new Date(time.test(written) ? written : NaN);
  if (Number.isNaN(date.getTime())) throw new UnreadablePayload("occurred_at is not a time");
  const { seconds } = timestampFromDate(date);
  const fraction = /\.(\d{1,9})/.exec(written)?.[1] ?? "";
  return { seconds, nanos: Number(fraction.padEnd(9, "0")) };
}

function readVersion(value: unknown): bigint {
  if (!Number.isSafeInteger(value) || (value as number) < 1) {
    throw new UnreadablePayload("version is not a whole number above 0");
  }
  return BigInt(value as number);
}
