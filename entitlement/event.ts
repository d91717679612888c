import { encodeEvent, UnreadablePayload } from "@kenri/proto/entitlement/encode.ts";
import type { SealedMessage } from "@kenri/proto/entitlement/seal.ts";
import type { OutboxRow } from "./outbox.ts";

export interface EventMessage extends SealedMessage {
  id: string;
}

/** The message that the relay publishes for a row of the outbox. */
export function toMessage(
  row: OutboxRow,
  traceparent: string | null = row.content.traceparent,
): EventMessage {
  const { payload, event_type } = row.content;
  if (typeof payload !== "object" || payload === null) {
    throw new UnreadablePayload("The payload is not an object");
  }
  const fields = payload as Record<string, unknown>;
  return {
    id: row.id,
    body: encodeEvent(row.id, fields),
    headers: {
      event_type,
      aggregate_key: row.key,
      occurred_at: `${fields["occurred_at"]}`,
      trace_id: `${fields["trace_id"]}`,
      ...(traceparent ? { traceparent } : {}),
    },
  };
}

// The payload of the row may be of any form, even one that can't be encoded.
export function traceIdOf({ content }: OutboxRow): unknown {
  return (content.payload as { trace_id?: unknown } | null)?.trace_id;
}
