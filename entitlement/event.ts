import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { EntitlementEventSchema, EntitlementEventType } from "@kenri/proto/entitlement_event";
import type { OutboxRow } from "./outbox.ts";

// The payload of an outbox row can't be read; no retry mends that.
export class UnreadablePayload extends Error {
  override readonly name = "UnreadablePayload";
}

export interface EventMessage {
  id: string;
  headers: Record<string, string>;
  body: Uint8Array;
}

const typeOf = new Map([
  ["EntitlementGranted", EntitlementEventType.GRANTED],
  ["EntitlementRevoked", EntitlementEventType.REVOKED],
]);

export function toMessage(
  row: OutboxRow,
  traceparent: string | null = row.content.traceparent,
): EventMessage {
  const { payload, event_type } = row.content;
  if (typeof payload !== "object" || payload === null) {
    throw new UnreadablePayload("The payload is not an object");
  }
  const fields = payload as Record<string, unknown>;
  const text = (name: string) => readText(fields, name);
  const eventType = typeOf.get(text("event_type"));
  if (eventType === undefined) throw new UnreadablePayload("event_type is unknown");
  const occurredAt = text("occurred_at");
  const event = create(EntitlementEventSchema, {
    eventId: row.id,
    eventType,
    occurredAt: readTime(occurredAt),
    userId: text("user_id"),
    stockKeepingUnit: text("stock_keeping_unit"),
    source: text("source"),
    sourceId: text("source_id"),
    version: readVersion(fields["version"]),
    traceId: text("trace_id"),
  });
  return {
    id: row.id,
    body: toBinary(EntitlementEventSchema, event),
    headers: {
      event_type,
      aggregate_key: row.key,
      occurred_at: occurredAt,
      trace_id: event.traceId,
      ...(traceparent ? { traceparent } : {}),
    },
  };
}

// Of any row, also of one that can't be read.
export function traceIdOf({ content }: OutboxRow): unknown {
  return (content.payload as { trace_id?: unknown } | null)?.trace_id;
}

function readText(fields: Record<string, unknown>, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw new UnreadablePayload(`${name} is not a string`);
  return value;
}

// RFC 3339, with the years that a Timestamp may have.
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

// Dates hold milliseconds; the microseconds that PostgreSQL wrote are added back.
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
