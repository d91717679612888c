import { MatchmakingEventType } from "../gen/matchmaking/v1/matchmaking_event_pb.ts";

// Event types by the names that headers, tables and the API use.
export const typeOfName: ReadonlyMap<string, MatchmakingEventType> = new Map([
  ["MatchFound", MatchmakingEventType.MATCH_FOUND],
  ["TicketExpired", MatchmakingEventType.TICKET_EXPIRED],
  ["TicketInvalid", MatchmakingEventType.TICKET_INVALID],
]);

const nameOfType = new Map<number, string>([...typeOfName].map(([name, type]) => [type, name]));

// An unknown type, of a newer schema, is represented by its number, so that its events are not
// lost.
export function nameOf(type: number): string {
  return nameOfType.get(type) ?? `${type}`;
}
