import { aggregateKeyOf } from "@kenri/proto/entitlement/aggregate_key.ts";
import { decodeEvent, type EventFields } from "@kenri/proto/entitlement/decode.ts";
import { pointsKeyOf } from "@kenri/proto/points/aggregate_key.ts";
import { decodePointsEvent, type PointsEventFields } from "@kenri/proto/points/decode.ts";

/** One event, as it is stored for its user. */
export interface Notification {
  event_id: string;
  user_id: string;
  aggregate_key: string;
  version: number;
  type: string;
  occurred_at: string;
  payload: EventFields | PointsEventFields;
  traceparent?: string; // if tracing is enabled
}

export function readNotification(body: Uint8Array): Notification {
  const payload = decodeEvent(body);
  return notificationOf(payload, aggregateKeyOf(payload.user_id, payload.stock_keeping_unit));
}

export function readPointsNotification(body: Uint8Array): Notification {
  const payload = decodePointsEvent(body);
  return notificationOf(payload, pointsKeyOf(payload.user_id, payload.unit));
}

function notificationOf(payload: Notification["payload"], aggregate_key: string): Notification {
  const { event_id, event_type: type, occurred_at, user_id, version } = payload;
  return { event_id, user_id, aggregate_key, version, type, occurred_at, payload };
}
