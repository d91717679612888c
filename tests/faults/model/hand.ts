// The rows that a worker holds, treated as its lines do (shared/queue/lines.ts): the rows of one key
// one after the other; a row that goes back takes along those behind it and those that join.
import { events, type Held, type Outcome } from "./state.ts";

export const maxAttempts = 2; // so few that FAILED can be reached

/**
 * The rows that may be worked on now: the first of each key that has no outcome yet. One that failed
 * is over only when the table has its outcome.
 */
export function nextOfEachKey(held: Held[], awaitsFailures: boolean): Held[] {
  const isOver = ({ outcome }: Held) =>
    outcome !== null && (outcome.kind !== "failed" || !awaitsFailures);
  const unfinished = held.filter((row) => !isOver(row));
  return unfinished.filter((row) =>
    !row.outcome && unfinished.find((other) => keyOf(other) === keyOf(row)) === row
  );
}

export function finish(held: Held[], row: Held, outcome: Outcome): Held[] {
  const ended = held.map((one) => one === row ? { ...one, outcome } : one);
  return goesBack(outcome) ? giveBack(ended, row) : ended;
}

/** The rows of its key that have no outcome yet go back. */
export function giveBack(held: Held[], row: Held): Held[] {
  return held.map((one) =>
    one.outcome || keyOf(one) !== keyOf(row) ? one : { ...one, outcome: { kind: "released" } }
  );
}

/** The rows of a claim join the lines of their keys. Those of a line that goes back go back, too. */
export function join(held: Held[], claimed: Held[]): Held[] {
  return claimed.reduce(
    (hand, row) => isBlocked(hand, row) ? giveBack([...hand, row], row) : [...hand, row],
    held,
  );
}

/** The rows whose lines may be joined. */
export function joinable(held: Held[]): Held[] {
  return held.filter((row) => row.leased && !isBlocked(held, row));
}

export function goesBack(outcome: Outcome): boolean {
  return outcome.kind === "retry" || outcome.kind === "released";
}

export function isUsedUp({ attempts }: Held): boolean {
  return attempts >= maxAttempts;
}

export function afterFailure({ attempts }: Held): Outcome {
  return attempts + 1 < maxAttempts ? { kind: "retry" } : { kind: "failed", attempted: true };
}

function isBlocked(held: Held[], row: Held): boolean {
  return held.some((one) => keyOf(one) === keyOf(row) && one.outcome && goesBack(one.outcome));
}

function keyOf({ event }: Held): string | undefined {
  return events[event]?.key;
}
