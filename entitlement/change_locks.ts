import type { Change } from "./entitlement.ts";

type Named = Pick<Change, "userId" | "stockKeepingUnit">;

// A change locks its entitlement, whose row may not exist yet. Where the entitlements of a user are
// counted, it locks the user as well, so that none is added meanwhile. The entitlement remains
// locked, because a replica with other settings may not count.
export function locksOf(change: Named, counted: boolean): string[] {
  return counted ? [entitlementLock(change), userLock(change)] : [entitlementLock(change)];
}

export function entitlementLock({ userId, stockKeepingUnit }: Named): string {
  return JSON.stringify([userId, stockKeepingUnit]);
}

function userLock({ userId }: Named): string {
  return JSON.stringify([userId]);
}
