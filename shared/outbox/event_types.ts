import type { Claimed } from "../queue/job.ts";
import { reasonOf } from "../process/reason.ts";

// The registry of a service: where the relay publishes each type of event, and how the event
// becomes a message.

export type EventTypes = ReadonlyMap<string, EventType>; // by the names that the rows use

export interface EventType {
  subject: string;
  // Throws if the payload can't be encoded. The event then ends FAILED, with the message of the
  // error.
  encode(id: string, payload: Payload): Encoded;
}

export type Payload = Record<string, unknown>; // as it was read: no field is certain

export interface Encoded {
  body: Uint8Array;
  headers?: Record<string, string>; // in addition to those that each message has
}

// What the relay needs of a row. The payload has at least `occurred_at` and `trace_id`.
export interface EventRow extends Claimed {
  content: { event_type: string; payload: unknown; traceparent: string | null };
}

export interface EventMessage extends Encoded {
  id: string;
  subject: string;
}

// The event can't be made into a message, and a retry does not help.
export class Unpublishable extends Error {
  override readonly name = "Unpublishable";
}

export function toMessage(
  row: EventRow,
  type: EventType,
  traceparent: string | null = row.content.traceparent,
): EventMessage {
  const { payload, event_type } = row.content;
  if (!isObject(payload)) throw new Unpublishable("The payload is not an object");
  const { body, headers } = encoded(type, row.id, payload);
  return {
    id: row.id,
    subject: type.subject,
    body,
    headers: {
      event_type,
      ...(row.key === null ? {} : { aggregate_key: row.key }),
      occurred_at: `${payload["occurred_at"]}`,
      trace_id: `${payload["trace_id"]}`,
      ...(traceparent ? { traceparent } : {}),
      ...headers,
    },
  };
}

function encoded(type: EventType, id: string, payload: Payload): Encoded {
  try {
    return type.encode(id, payload);
  } catch (error) {
    throw new Unpublishable(reasonOf(error), { cause: error });
  }
}

function isObject(payload: unknown): payload is Payload {
  return typeof payload === "object" && payload !== null;
}

// The payload may be of any form, even one that can't be encoded.
export function traceIdOf({ content }: EventRow): unknown {
  return isObject(content.payload) ? content.payload["trace_id"] : undefined;
}
