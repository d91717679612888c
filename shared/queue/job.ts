import type { Backoff } from "./backoff.ts";
import type { LeaseOptions } from "./rows_in_hand.ts";
import type { Step } from "../telemetry/tracing.ts";

// What a worker does with a row, and how the work can end.

export interface Claimed {
  id: string;
  key: string; // rows of one key are worked on one after the other, in the order of the claim
  attempts: number; // failed attempts so far; an expired lease counts as one
  takenOver: boolean;
}

export type Outcome<Result> =
  | { kind: "done"; result: Result }
  | { kind: "retry"; error: string } // this row failed, but may succeed later
  | { kind: "failed"; error: string } // this row will never succeed
  | { kind: "unavailable"; error: string }; // the destination is unavailable: not the fault of the row

export type Settlement<Row, Result> =
  | { row: Row; kind: "done"; result: Result }
  | { row: Row; kind: "retry"; error: string; delayMs: number }
  | { row: Row; kind: "failed"; error: string; attempted: boolean }
  | { row: Row; kind: "released" };

export interface Job<Row extends Claimed, Result> extends LeaseOptions<Row> {
  name: string;
  worker: string; // name in the leases, for people to read
  batchSize: number;
  pollIntervalMs: number;
  maxAttempts: number;
  backoff: Backoff;
  claim(limit: number): Promise<Row[]>;
  // With tracing, `traceparent` is the parent of the next step.
  work(row: Row, traceparent?: string): Promise<Outcome<Result>>;
  // Returns the ids of the rows that were still leased to this worker.
  settle(settlements: Settlement<Row, Result>[]): Promise<Set<string>>;
  step: Step; // the work on a row, in a trace
  traceparentOf(row: Row): string | null;
  about(row: Row): Record<string, unknown>; // more fields for the log
}
