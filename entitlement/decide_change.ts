import { type Answer, type Decision, refusal } from "@kenri/shared/commands/answer.ts";
import { type Change, changed, type Status, statusAfter } from "./entitlement.ts";
import { statusOfCode } from "./errors.ts";
import { leaseLost, type ReservationRow } from "./points/reservations.ts";

// What the database contains for a change, read after its locks were granted.
export interface Situation {
  status: Status | null; // null if there is no entitlement
  version: number | null;
  at: string; // the time for the change, later than that of the change before
  eventId: string; // the id for the event
  hasCapacity: boolean; // whether the user may have one more entitlement
  holdsReservation: boolean; // the reservation is still leased to this worker
}

// A change to write.
export interface Commit {
  request: Change;
  at: string;
  eventId: string;
  version: number;
}

// Each change has the first two effects.
export type Effect =
  | Commit & { kind: "event" }
  | Commit & { kind: "change" }
  | { kind: "done"; row: ReservationRow; outcome: { status: number; body: unknown } };

// A reservation is done in the commit of its change, or of the refusal.
export function decide(request: Change, situation: Situation): Decision<Effect> {
  const { reservation: row } = request;
  if (row && !situation.holdsReservation) return { answer: leaseLost, effects: [] };
  const decision = decideChange(request, situation);
  if (!row) return decision;
  const { answer: { status, body }, effects } = decision;
  const outcome = { status, body: JSON.parse(body) };
  return { ...decision, effects: [...effects, { kind: "done", row, outcome }] };
}

// Only a first change needs capacity among the entitlements of its user.
function decideChange(
  request: Change,
  { status, version, at, eventId, hasCapacity }: Situation,
): Decision<Effect> {
  const current = status && version ? { status, version } : undefined;
  const next = changed(current, request.action);
  if (!next) return { answer: stateConflict[request.action], effects: [] };
  if (!current && !hasCapacity) return { answer: overLimit, effects: [] };
  const body = JSON.stringify({
    user_id: request.userId,
    stock_keeping_unit: request.stockKeepingUnit,
    status: next.status,
    version: next.version,
    updated_at: at,
  });
  const commit = { request, at, eventId, version: next.version };
  return {
    answer: { status: 200, body, outcome: "applied" },
    effects: [{ kind: "event", ...commit }, { kind: "change", ...commit }],
  };
}

const overLimit = refusal(
  statusOfCode,
  "over_limit",
  "ENTITLEMENT_LIMIT_REACHED",
  "the user has as many entitlements as allowed",
);
const stateConflict = {
  GRANT: already(statusAfter.GRANT),
  REVOKE: already(statusAfter.REVOKE),
};

function already(status: Status): Answer {
  return refusal(
    statusOfCode,
    "state_conflict",
    "ENTITLEMENT_STATE_CONFLICT",
    `already ${status}`,
  );
}
