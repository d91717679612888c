import { type Answer, type Decision, keyConflict, refusal } from "@kenri/shared/commands/answer.ts";
import type { Sender } from "@kenri/shared/commands/route.ts";
import { statusOfCode } from "../errors.ts";
import { leaseLost, type ReservationRow } from "./reservations.ts";

// A user has a balance of points in each unit. These are the rules of its changes.

export const mostPoints = Number.MAX_SAFE_INTEGER;

export type Kind = "GRANT" | "SPEND";

export const eventTypeOf: Record<Kind, string> = { GRANT: "PointsAdded", SPEND: "PointsTaken" };

export interface PointsChange extends Sender {
  kind: Kind;
  userId: string;
  unit: string;
  pointAmount: number; // always positive
  source: string;
  sourceId: string;
  reservation?: ReservationRow; // the one that is due, if this is not a request
}

// What the database contains for a change, read after its locks were granted.
export interface Situation {
  balance: number;
  version: number; // 0 if there is no balance yet
  maxBalance: number;
  id: string; // for the transaction
  at: string; // the time for it, later than that of the transaction before
  knownId: string | null; // the transaction that has its key
  keyIsReserved: boolean; // a reservation has its key, or somebody who was erased had it
  holdsReservation: boolean; // the reservation is still leased to this worker
}

export interface Transaction {
  change: PointsChange;
  id: string;
  at: string;
  amount: number; // negative for points that are spent
  balance: number; // after it
  version: number;
}

export type Effect =
  | Transaction & { kind: "event" }
  | Transaction & { kind: "transaction" }
  | { kind: "done"; row: ReservationRow; transactionId: string };

export function decide(change: PointsChange, situation: Situation): Decision<Effect> {
  const { reservation } = change;
  if (reservation) return decideDue(change, situation, reservation);
  if (situation.knownId || situation.keyIsReserved) return { answer: keyConflict, effects: [] };
  return decideChange(change, situation);
}

// A reservation is done in the commit of its transaction. If the transaction exists although the
// reservation is not done, the database was restored and the transaction recovered.
function decideDue(
  change: PointsChange,
  situation: Situation,
  row: ReservationRow,
): Decision<Effect> {
  if (!situation.holdsReservation) return { answer: leaseLost, effects: [] };
  const { knownId } = situation;
  if (knownId) return { answer: added, effects: [{ kind: "done", row, transactionId: knownId }] };
  const decision = decideChange(change, situation);
  if (decision.effects.length === 0) return decision;
  return {
    ...decision,
    effects: [...decision.effects, { kind: "done", row, transactionId: situation.id }],
  };
}

function decideChange(change: PointsChange, situation: Situation): Decision<Effect> {
  const { kind, pointAmount } = change;
  const { balance, maxBalance, id, at } = situation;
  if (kind === "SPEND" && pointAmount > balance) return { answer: insufficient, effects: [] };
  if (kind === "GRANT" && pointAmount > maxBalance - balance) {
    return { answer: overLimit, effects: [] };
  }
  const amount = kind === "GRANT" ? pointAmount : -pointAmount;
  const version = situation.version + 1;
  const transaction = { change, id, at, amount, balance: balance + amount, version };
  return {
    answer: { status: 200, body: bodyOf(transaction), outcome: "applied" },
    effects: [{ kind: "event", ...transaction }, { kind: "transaction", ...transaction }],
  };
}

// What a change finds after earlier ones of the same commit. The database accepts a time that is
// ahead of its clock only if it is a microsecond after the transaction before.
export function after(earlier: Effect[], found: Situation): Situation {
  const last = earlier.findLast((effect) => effect.kind === "transaction");
  if (!last) return found;
  const at = found.at > last.at ? found.at : microsecondAfter(last.at);
  return { ...found, balance: last.balance, version: last.version, at };
}

function microsecondAfter(time: string): string {
  const [second, micros] = [time.slice(0, 19), Number(time.slice(20, 26)) + 1];
  if (micros < 1_000_000) return `${second}.${`${micros}`.padStart(6, "0")}Z`;
  return new Date(Date.parse(`${second}Z`) + 1_000).toISOString().replace(".000Z", ".000000Z");
}

function bodyOf({ change, id, at, amount, balance, version }: Transaction): string {
  return JSON.stringify({
    transaction: {
      transaction_id: id,
      kind: change.kind,
      unit: change.unit,
      point_amount: amount,
      balance_after: balance,
      version,
      reason: change.source,
      source_id: change.sourceId,
      ...(change.reservation ? { reservation_id: change.reservation.id } : {}),
      created_at: at,
    },
    balance,
  });
}

export const tooFewPoints = "the balance is lower than point_amount";
const insufficient = refusal(statusOfCode, "state_conflict", "INSUFFICIENT_POINTS", tooFewPoints);
export const limitReached = "the balance would exceed its limit";
const overLimit = refusal(statusOfCode, "over_limit", "POINTS_LIMIT_REACHED", limitReached);

const added: Answer = { status: 200, body: "", outcome: "applied" }; // only the worker sees it
