// The rows that a worker holds, treated as Worker.#workOn and #workOnOne (shared/queue/worker.ts) do: the
// rows of one key one after the other; a row that must wait holds back the ones after it.
import { events, type Held, type Outcome } from "./state.ts";

export const maxAttempts = 2; // so few that FAILED can be reached

/** The rows that may be worked on now: the first of each key that has no outcome yet. */
export function nextOfEachKey(held: Held[]): Held[] {
  const unfinished = held.filter(({ outcome }) => !outcome);
  return unfinished.filter((row) =>
    unfinished.find((other) => keyOf(other) === keyOf(row)) === row
  );
}

export function finish(held: Held[], row: Held, outcome: Outcome): Held[] {
  const waits = outcome.kind === "retry" || outcome.kind === "released";
  return held.map((one) => {
    if (one === row) return { ...one, outcome };
    if (!waits || one.outcome || keyOf(one) !== keyOf(row)) return one;
    return { ...one, outcome: { kind: "released" } };
  });
}

export function isUsedUp({ attempts }: Held): boolean {
  return attempts >= maxAttempts;
}

export function afterFailure({ attempts }: Held): Outcome {
  return attempts + 1 < maxAttempts ? { kind: "retry" } : { kind: "failed", attempted: true };
}

function keyOf({ event }: Held): string | undefined {
  return events[event]?.key;
}
