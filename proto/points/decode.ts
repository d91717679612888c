import { PointsEventSchema } from "../gen/points/v1/points_event_pb.ts";
import { readBody, readEventId, readNumber, readTime, storable } from "../read_event.ts";
import { nameOf } from "./event_types.ts";

// The fields of an event under the names of the outbox payload.
export interface PointsEventFields extends Record<string, string | number | null> {
  event_id: string;
  event_type: string;
  occurred_at: string;
  user_id: string;
  unit: string;
  point_amount: number;
  balance: number;
  version: number;
  source: string;
  source_id: string;
  transaction_id: string;
  reservation_id: string | null;
  trace_id: string;
}

export function decodePointsEvent(body: Uint8Array): PointsEventFields {
  const event = readBody(PointsEventSchema, body);
  return storable({
    event_id: readEventId(event),
    event_type: nameOf(event.eventType),
    occurred_at: readTime(event),
    user_id: event.userId,
    unit: event.unit,
    point_amount: readNumber("point_amount", event.pointAmount),
    balance: readNumber("balance", event.balance),
    version: readNumber("version", event.version),
    source: event.source,
    source_id: event.sourceId,
    transaction_id: event.transactionId,
    reservation_id: event.reservationId === "" ? null : event.reservationId,
    trace_id: event.traceId,
  });
}
