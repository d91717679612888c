// An entitlement is a user's right to one stock keeping unit. These are the rules of its changes.

export type Status = "ACTIVE" | "REVOKED";
export type Action = "GRANT" | "REVOKE";

export interface Change {
  action: Action;
  userId: string;
  stockKeepingUnit: string;
  reason: string;
  purchaseId: string;
  caller: string; // "" if callers have no names
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

// The entitlement after the change, or nothing if it already has that status. An item that was
// never granted can be revoked, because a refund may overtake its purchase.
export function changed(current: Entitlement | undefined, action: Action): Entitlement | undefined {
  const status = statusAfter[action];
  if (current?.status === status) return undefined;
  return { status, version: (current?.version ?? 0) + 1 };
}

// The idempotency key as it is stored and locked. Each caller has keys of its own: a key contains
// no space, so it can't look like that of another caller.
export function storedKeyOf({ caller, idempotencyKey }: Change): string {
  return caller === "" ? idempotencyKey : `${caller} ${idempotencyKey}`;
}
