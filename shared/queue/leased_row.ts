import type { Claimed } from "./job.ts";

export interface LeasedRow<Content> extends Claimed {
  key: string;
  claimedAt: number; // by performance.now(); the row's locked_at by the database's clock
  content: Content;
}

export interface Lease {
  worker: string; // for people; the token is what protects
  leaseMs: number;
}

// A row as returned by the statement that leased it.
export interface ReturnedRow {
  id: string;
  aggregate_key: string;
  attempt_count: number;
  taken_over: boolean;
  lane?: string;
}

export function leasedRow<Content>(
  row: ReturnedRow & Content,
  token: string,
  claimedAt = performance.now(),
): LeasedRow<Content> {
  return {
    id: row.id,
    key: row.aggregate_key,
    token,
    ...(row.lane === undefined ? {} : { lane: row.lane }),
    attempts: row.attempt_count,
    takenOver: row.taken_over,
    claimedAt,
    content: row,
  };
}
