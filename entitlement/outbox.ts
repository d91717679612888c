import { sql } from "@kenri/shared/postgres/sql.ts";
import type { LeasedRow } from "@kenri/shared/queue/leased_row.ts";
import { leasedTable, oldestFirst } from "@kenri/shared/queue/leased_table.ts";

// The states of an outbox row and every move between them:
//   PENDING → IN_FLIGHT      claimed (or inserted as IN_FLIGHT, for the relay of the same process)
//   IN_FLIGHT → IN_FLIGHT    claimed again, because the lease ran out
//   IN_FLIGHT → PUBLISHED    acknowledged by the stream
//   IN_FLIGHT → PENDING      failed and to be retried, or released
//   IN_FLIGHT → FAILED       failed for good
//   PUBLISHED → PENDING      republished: lost by the stream, replayed, or not received
//   FAILED → PENDING         republished: it was a dead letter

export interface OutboxContent {
  event_type: string;
  payload: unknown;
  traceparent: string | null;
  age_seconds: number; // at the time of the claim
}

export type OutboxRow = LeasedRow<OutboxContent>;

export interface Published {
  generation: number;
  sequence: number;
  ackedAt: number; // by performance.now()
}

export const outbox = leasedTable<OutboxContent, Published>({
  name: "outbox_events",
  id: "event_id",
  attempts: "outbox_attempts",
  working: "IN_FLIGHT",
  order: oldestFirst("created_at"),
  content: sql`event_type, payload, traceparent,
    extract(epoch from locked_at - created_at)::float8 as age_seconds`,
  done: {
    status: "PUBLISHED",
    // published_at is the time of the acknowledgement: the database's time of the claim and the time
    // that has passed since. So it follows the order of events of one key, whenever each is settled.
    set: sql`published_at = row.locked_at + make_interval(secs => settled.after_ms / 1000),
    stream_generation = settled.generation,
    stream_seq = settled.sequence`,
    values: {
      after_ms: { type: "float8", of: (row, { ackedAt }) => ackedAt - row.claimedAt },
      generation: { type: "bigint", of: (_, { generation }) => generation },
      sequence: { type: "bigint", of: (_, { sequence }) => sequence },
    },
  },
});
