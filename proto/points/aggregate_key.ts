import { escaped } from "../entitlement/aggregate_key.ts";

// The key of a balance: its events are published, and delivered to the user, in the order of their
// versions. The entitlement database has the same function as points_key_of. A unit contains no
// colon, and even one of a foreign message would leave no doubt, because it comes last.
export function pointsKeyOf(userId: string, unit: string): string {
  return pointsKeyPrefixOf(userId) + unit;
}

// All keys of this user's balances begin with this prefix, and no other keys of balances do.
export function pointsKeyPrefixOf(userId: string): string {
  return `points:${escaped(userId)}:`;
}
