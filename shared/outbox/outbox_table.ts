import type { Sql } from "../postgres/sql.ts";
import type { LeasedRow, LeasedTable } from "../queue/leases.ts";

// The table of an outbox: a leased table that also has the columns event_id (its id), event_type,
// aggregate_key, payload, traceparent, created_at (the position of an event within its key),
// published_at, stream_generation and stream_seq. Its events are published to one stream, on as
// many subjects as its registry of types has.

export interface OutboxTable extends LeasedTable {
  // The aggregate key by the payload of `row`, for rows that may have been written with an older
  // form of it. Null for events whose key never had another form.
  keyOf?: Sql;
}

export interface OutboxContent {
  event_type: string;
  payload: unknown;
  traceparent: string | null;
  age_seconds: number; // at the time of the claim
}

export type OutboxRow = LeasedRow<OutboxContent>;
