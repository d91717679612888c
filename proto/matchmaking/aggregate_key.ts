import { escaped } from "../entitlement/aggregate_key.ts";

// The key of a ticket. A ticket has at most one event, so nothing is ordered by it. A ticket id may
// contain colons if it is broken, which leaves no doubt, because it comes last.
export function matchmakingKeyOf(userId: string, ticketId: string): string {
  return matchmakingKeyPrefixOf(userId) + ticketId;
}

// All keys of this user's tickets begin with this prefix, and no other keys of tickets do.
export function matchmakingKeyPrefixOf(userId: string): string {
  return `matchmaking:${escaped(userId)}:`;
}
