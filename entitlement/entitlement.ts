import type { Sender } from "@kenri/shared/commands/route.ts";
import type { ReservationRow } from "./points/reservations.ts";

// An entitlement is a user's right to one stock keeping unit. These are the rules of its changes.

export type Status = "ACTIVE" | "REVOKED";
export type Action = "GRANT" | "REVOKE";

export interface Change extends Sender {
  action: Action;
  userId: string;
  stockKeepingUnit: string;
  reason: string;
  purchaseId: string;
  reservation?: ReservationRow; // the one that is due, if this is not a request
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
