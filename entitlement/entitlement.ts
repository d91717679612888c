// The noun of this service: a user's right to one stock keeping unit, and the rules of its change.

export type Status = "ACTIVE" | "REVOKED";
export type Action = "GRANT" | "REVOKE";

export interface Change {
  action: Action;
  userId: string;
  stockKeepingUnit: string;
  reason: string;
  purchaseId: string;
  caller: string; // "" where callers have no names
  idempotencyKey: string;
  traceId: string;
  traceparent: string | null;
}

export interface Entitlement {
  status: Status;
  version: number;
}

export const statusAfter: Record<Action, Status> = { GRANT: "ACTIVE", REVOKE: "REVOKED" };
export const eventTypeOf: Record<Action, string> = {
  GRANT: "EntitlementGranted",
  REVOKE: "EntitlementRevoked",
};

// The entitlement after the change, or nothing when it is in that state already. Revoking what was
// never granted is allowed: a refund may overtake its purchase.
export function changed(before: Entitlement | undefined, action: Action): Entitlement | undefined {
  const status = statusAfter[action];
  if (before?.status === status) return undefined;
  return { status, version: (before?.version ?? 0) + 1 };
}

// As it is stored and locked: a caller's own. Keys have no spaces, so no caller can have another's.
export function storedKeyOf({ caller, idempotencyKey }: Change): string {
  return caller === "" ? idempotencyKey : `${caller} ${idempotencyKey}`;
}
