import type { Backoff } from "./backoff.ts";
import type { LeaseOptions } from "./rows_in_hand.ts";
import type { Step } from "../telemetry/tracing.ts";

// What a worker does with a row, and how the work can end.

export interface Claimed {
  id: string;
  key: string | null; // rows of one key are worked on one after the other; null: in no order
  token: string; // proves the lease
  lane?: string | undefined; // the destination, if it can be limited or paused on its own
  attempts: number; // failed attempts so far; an expired lease counts as one
  takenOver: boolean;
}

export interface Claim<Row> {
  rows: Row[]; // those of one key in the order in which they are to be worked on
  more: boolean; // due rows may be left behind, so claim again at once
  // For tables by due time: until the earliest row of the future is due; null if there is none.
  nextDueMs?: number | null;
}

// What only the worker knows when it claims.
export interface ClaimContext {
  // Rows that are leased under these tokens don't hold back the later rows of their key, because
  // these join the line of their key in memory (lines.ts).
  tokens: string[];
  lanes: string[]; // whose rows are not to be claimed: they are paused or full (lanes.ts)
  // Earlier claims got no tokens although rows were in hand, so they passed over rows that may join
  // now. This claim is to begin at the oldest row.
  fromOldest: boolean;
}

export const nothingInHand: ClaimContext = { tokens: [], lanes: [], fromOldest: false };

export type Outcome<Result> =
  | { kind: "done"; result: Result }
  // This row failed, but may succeed later: after the backoff, or after a delay of its own.
  | { kind: "retry"; error: string; delayMs?: number; result?: Result }
  // This row will never succeed. The attempt does not count if nothing was tried.
  | { kind: "failed"; error: string; attempted?: boolean; result?: Result }
  // Not now, and nothing is counted. A lane that is named pauses for as long.
  | ({ kind: "later"; delayMs: number; lane?: string } & PutOff<Result>)
  | { kind: "unavailable"; error: string }; // the destination is unavailable: not the fault of the row

// What an attempt that does not count has brought, for tables that record it.
type PutOff<Result> = { error?: never; result?: never } | { error: string; result: Result };

export type Settlement<Row, Result> =
  | { row: Row; kind: "done"; result: Result }
  | { row: Row; kind: "retry"; error: string; delayMs: number; result?: Result }
  | { row: Row; kind: "failed"; error: string; attempted: boolean; result?: Result }
  // Nothing is counted. Without a delay the row is due at once. A lane is paused for the same time.
  | ({ row: Row; kind: "released"; delayMs?: number; lane?: string } & PutOff<Result>);

// How often a row is tried, and when again.
export interface Retries {
  maxAttempts: number;
  backoff: Backoff;
}

export interface Job<Row extends Claimed, Result> extends LeaseOptions<Row>, Retries {
  name: string;
  worker: string; // name in the leases, for people to read
  batchSize: number;
  pollIntervalMs: number;
  retriesOf?(row: Row): Retries; // for rows that have others than the rest
  claim(limit: number, context: ClaimContext): Promise<Claim<Row>>;
  claimed?(rows: Row[]): void; // claimed or handed over
  atOnce?(lane: string): number; // how many rows of a lane may be worked on at once
  // With tracing, `traceparent` is the parent of the next step.
  work(row: Row, traceparent?: string): Promise<Outcome<Result>>;
  // Returns the ids of the rows that were still leased to this worker.
  settle(settlements: Settlement<Row, Result>[]): Promise<Set<string>>;
  stepOf(row: Row): Step; // the work on a row, in a trace
  traceparentOf(row: Row): string | null;
  about(row: Row): Record<string, unknown>; // more fields for the log
}
