// Events of points as the relay would publish them.
import type { PointsEventFields } from "../../proto/points/decode.ts";
import { encodePointsEvent } from "../../proto/points/encode.ts";
import { type Place, pointsSubjectOf } from "../../tools/load/stage.ts";
import { type Message, publish } from "./events.ts";

export function pointsEventOf(fields: Partial<PointsEventFields> = {}): PointsEventFields {
  const event_id = crypto.randomUUID();
  return {
    event_id,
    event_type: "PointsAdded",
    occurred_at: "2026-01-02T03:04:05.678901Z",
    user_id: "ann",
    unit: "points",
    point_amount: 5,
    balance: 5,
    version: 1,
    source: "campaign",
    source_id: "c-1",
    transaction_id: event_id,
    reservation_id: null,
    trace_id: "0af7651916cd43dd8448eb211c80319c",
    ...fields,
  };
}

/** With these a release that does not know points would take the event for the grant of an item. */
export const misleading: Partial<PointsEventFields> = { point_amount: 1, balance: 81 };

export function pointsMessageOf(event: PointsEventFields): Message {
  const headers = { "Nats-Msg-Id": event.event_id, "event_type": event.event_type };
  return { body: encodePointsEvent(event.event_id, event), headers };
}

export function publishPoints(
  place: Pick<Place, "natsUrl" | "stream">,
  events: PointsEventFields[],
): Promise<number[]> {
  return publish(place.natsUrl, pointsSubjectOf(place), events.map(pointsMessageOf));
}
