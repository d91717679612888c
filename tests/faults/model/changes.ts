// Functions that make the next state of a state.
import type { Changed } from "./real_calls.ts";
import type { Event, Held, LeasedTables, Link, ReminderRow, State, Work, Worker } from "./state.ts";

export function nameOf(at: number): string {
  return String.fromCharCode("A".charCodeAt(0) + at);
}

export function withFault(state: State): State {
  const { history } = state;
  return { ...state, history: { ...history, faultsLeft: history.faultsLeft - 1 } };
}

export function withWorker<Tables>(work: Work<Tables>, at: number, worker: Worker): Work<Tables> {
  return { ...work, workers: work.workers.with(at, worker) };
}

/** It has lost what it had in hand. */
export function withCrash<Tables>(
  work: Work<Tables>,
  at: number,
  link: Link | null = null,
): Work<Tables> {
  return withWorker(work, at, { held: [], flight: [], link, paused: false });
}

export function withHeld<Tables>(work: Work<Tables>, at: number, held: Held[]): Work<Tables> {
  return withWorker(work, at, { ...work.workers[at] as Worker, held });
}

export function withFlight<Tables>(work: Work<Tables>, at: number, flight: Held[]): Work<Tables> {
  return withWorker(work, at, { ...work.workers[at] as Worker, flight });
}

export function withPause<Tables>(work: Work<Tables>, at: number, paused: boolean): Work<Tables> {
  return withWorker(work, at, { ...work.workers[at] as Worker, paused });
}

/** Applies the tables after a call, and ends the leases that it ended. */
export function withTables<Tables>(
  { workers }: Work<Tables>,
  { tables, endedLeases }: Changed<Tables, unknown>,
): Work<Tables> {
  const isEnded = ({ event, leased }: Held) => leased && endedLeases.includes(event);
  const afterEnds = (rows: Held[]) =>
    rows.map((row) => isEnded(row) ? { ...row, leased: false } : row);
  return {
    tables,
    workers: workers.map((worker) =>
      worker.held.some(isEnded) || worker.flight.some(isEnded)
        ? { ...worker, held: afterEnds(worker.held), flight: afterEnds(worker.flight) }
        : worker
    ),
  };
}

/** Applies a change of a row that only needs time. */
export function withRow<Tables extends LeasedTables>(
  work: Work<Tables>,
  event: Event,
  change: Partial<ReminderRow>,
): Work<Tables> {
  const rows = work.tables.rows.map((row, at) => row && at === event ? { ...row, ...change } : row);
  return { ...work, tables: { ...work.tables, rows } };
}

export function withFlag(flags: boolean[], event: Event): boolean[] {
  return flags[event] ? flags : flags.with(event, true);
}
