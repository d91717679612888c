import { aggregateKeyOf } from "@kenri/proto/entitlement/aggregate_key.ts";
import { decodeEvent, type EventFields } from "@kenri/proto/entitlement/decode.ts";
import { matchmakingKeyOf } from "@kenri/proto/matchmaking/aggregate_key.ts";
import {
  decodeMatchmakingEvent,
  type MatchmakingEventFields,
} from "@kenri/proto/matchmaking/decode.ts";
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
  payload: EventFields | PointsEventFields | MatchmakingEventFields;
  traceparent?: string; // if tracing is enabled
}

export function readNotification(body: Uint8Array): Notification {
  const payload = decodeEvent(body);
  const { user_id, stock_keeping_unit, version } = payload;
  return notificationOf(payload, aggregateKeyOf(user_id, stock_keeping_unit), version);
}

export function readPointsNotification(body: Uint8Array): Notification {
  const payload = decodePointsEvent(body);
  return notificationOf(payload, pointsKeyOf(payload.user_id, payload.unit), payload.version);
}

// A ticket has one event at most, so there is no other version.
export function readMatchmakingNotification(body: Uint8Array): Notification {
  const payload = decodeMatchmakingEvent(body);
  return notificationOf(payload, matchmakingKeyOf(payload.user_id, payload.ticket_id), 1);
}

function notificationOf(
  payload: Notification["payload"],
  aggregate_key: string,
  version: number,
): Notification {
  const { event_id, event_type: type, occurred_at, user_id } = payload;
  return { event_id, user_id, aggregate_key, version, type, occurred_at, payload };
}
