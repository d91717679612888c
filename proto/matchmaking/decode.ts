import { MatchmakingEventSchema } from "../gen/matchmaking/v1/matchmaking_event_pb.ts";
import { readBody, readEventId, readNumber, readTime, storable } from "../read_event.ts";
import { nameOf } from "./event_types.ts";

// The fields of an event under the names of the payload that was encoded.
export interface MatchmakingEventFields extends Record<string, string | number | string[] | null> {
  event_id: string;
  event_type: string;
  occurred_at: string;
  match_id: string | null;
  mode: string;
  trace_id: string;
  user_id: string; // empty if a broken ticket no longer says whose it is
  ticket_id: string;
  peer_user_ids: string[];
  waited_ms: number;
}

export function decodeMatchmakingEvent(body: Uint8Array): MatchmakingEventFields {
  const event = readBody(MatchmakingEventSchema, body);
  return storable({
    event_id: readEventId(event),
    event_type: nameOf(event.eventType),
    occurred_at: readTime(event),
    match_id: event.matchId === "" ? null : event.matchId,
    mode: event.mode,
    trace_id: event.traceId,
    user_id: event.userId,
    ticket_id: event.ticketId,
    peer_user_ids: event.peerUserIds,
    waited_ms: readNumber("waited_ms", event.waitedMs),
  });
}
