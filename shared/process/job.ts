import type { Backoff } from "../queue/backoff.ts";
import type { LeaseOptions } from "../queue/rows_in_hand.ts";
import type { Step } from "../telemetry/tracing.ts";

// What a worker is given to do, and what it says of it.

export interface Claimed {
  id: string;
  key: string; // rows of one key are worked on one after the other, in the order of the claim
  attempts: number; // failed ones so far; a lease that ran out is one of them
  takenOver: boolean;
}

export type Outcome<Result> =
  | { kind: "done"; result: Result }
  | { kind: "retry"; error: string } // this row failed, later it may not
  | { kind: "failed"; error: string } // this row fails whenever it is tried
  | { kind: "unavailable"; error: string }; // the other side is away: no row is to blame

export type Settlement<Row, Result> =
  | { row: Row; kind: "done"; result: Result }
  | { row: Row; kind: "retry"; error: string; delayMs: number }
  | { row: Row; kind: "failed"; error: string; attempted: boolean }
  | { row: Row; kind: "released" };

export interface Job<Row extends Claimed, Result> extends LeaseOptions<Row> {
  name: string;
  worker: string; // whose leases they are, for people
  batchSize: number;
  pollIntervalMs: number;
  maxAttempts: number;
  backoff: Backoff;
  claim(limit: number): Promise<Row[]>;
  // While traces are written: under which traceparent it goes on.
  work(row: Row, traceparent?: string): Promise<Outcome<Result>>;
  // Returns the ids of the rows that were still leased to this worker.
  settle(settlements: Settlement<Row, Result>[]): Promise<Set<string>>;
  step: Step; // what its work is in a trace
  traceparentOf(row: Row): string | null;
  about(row: Row): Record<string, unknown>; // for the log
}
