import { timestampFromDate } from "@bufbuild/protobuf/wkt";

// Reads the fields of an event from its payload in the outbox.

export type Payload = Record<string, unknown>;

// The fields of the event can't be encoded, and a retry does not help.
export class UnreadablePayload extends Error {
  override readonly name = "UnreadablePayload";
}

export function readText(fields: Payload, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw new UnreadablePayload(`${name} is not a string`);
  return value;
}

export function readTexts(fields: Payload, name: string): string[] {
  const value = fields[name];
  if (Array.isArray(value) && value.every((text) => typeof text === "string")) return value;
  throw new UnreadablePayload(`${name} is not a list of strings`);
}

export function readType<Type>(fields: Payload, types: ReadonlyMap<string, Type>): Type {
  const type = types.get(readText(fields, "event_type"));
  if (type === undefined) throw new UnreadablePayload("event_type is unknown");
  return type;
}

// RFC 3339, with the years that a Timestamp allows.
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

// A Date only has milliseconds, so the microseconds that PostgreSQL wrote are read from the text.
export function readOccurredAt(fields: Payload): { seconds: bigint; nanos: number } {
  const written = readText(fields, "occurred_at");
  const date = new Date(time.test(written) ? written : NaN);
  if (Number.isNaN(date.getTime())) throw new UnreadablePayload("occurred_at is not a time");
  const { seconds } = timestampFromDate(date);
  const fraction = /\.(\d{1,9})/.exec(written)?.[1] ?? "";
  return { seconds, nanos: Number(fraction.padEnd(9, "0")) };
}

export function readVersion(fields: Payload): bigint {
  const value = fields["version"];
  if (!Number.isSafeInteger(value) || (value as number) < 1) {
    throw new UnreadablePayload("version is not a whole number above 0");
  }
  return BigInt(value as number);
}

export function readWhole(fields: Payload, name: string): bigint {
  const value = fields[name];
  if (!Number.isSafeInteger(value)) throw new UnreadablePayload(`${name} is not a whole number`);
  return BigInt(value as number);
}
