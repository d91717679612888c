import { EntitlementEventSchema } from "../gen/entitlement/v1/entitlement_event_pb.ts";
import { readBody, readEventId, readNumber, readTime, storable } from "../read_event.ts";
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

export function decodeEvent(body: Uint8Array): EventFields {
  const event = readBody(EntitlementEventSchema, body);
  return storable({
    event_id: readEventId(event),
    event_type: nameOf(event.eventType),
    occurred_at: readTime(event),
    user_id: event.userId,
    stock_keeping_unit: event.stockKeepingUnit,
    source: event.source,
    source_id: event.sourceId,
    version: readNumber("version", event.version),
    trace_id: event.traceId,
  });
}
