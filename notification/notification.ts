import { aggregateKeyOf } from "@kenri/proto/entitlement/aggregate_key.ts";
import { decodeEvent, type EventFields } from "@kenri/proto/entitlement/decode.ts";

/** One event, as it is stored for its user. */
export interface Notification {
  event_id: string;
  user_id: string;
  aggregate_key: string;
  version: number;
  type: string;
  occurred_at: string;
  payload: EventFields;
  traceparent?: string; // if tracing is enabled
}

export function readNotification(body: Uint8Array): Notification {
  const payload = decodeEvent(body);
  const { event_id, event_type, occurred_at, user_id, stock_keeping_unit, version } = payload;
  return {
    event_id,
    user_id,
    aggregate_key: aggregateKeyOf(user_id, stock_keeping_unit),
    version,
    type: event_type,
    occurred_at,
    payload,
  };
}
