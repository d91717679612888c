import { name, type Sql, sql } from "../postgres/sql.ts";
import type { LeasedRow } from "../queue/leased_row.ts";
import { type LeasedTable, leasedTable, oldestFirst } from "../queue/leased_table.ts";
import type { Published } from "./source.ts";

// The table of an outbox. The states of its rows and every move between them:
//   PENDING → IN_FLIGHT      claimed (or inserted as IN_FLIGHT, for the relay of the same process)
//   IN_FLIGHT → IN_FLIGHT    claimed again, because the lease ran out
//   IN_FLIGHT → PUBLISHED    acknowledged by the stream
//   IN_FLIGHT → PENDING      failed and to be retried, or released
//   IN_FLIGHT → FAILED       failed for good
//   PUBLISHED → PENDING      republished: lost by the stream, replayed, or not received
//   FAILED → PENDING         republished: it was a dead letter
//
// Besides those of a leased table it has the columns
//
//   event_id, event_type, aggregate_key
//   payload              jsonb, an object with at least occurred_at and trace_id
//   traceparent          of the change; may be null
//   created_at           the position of the event among those of its key
//   published_at         the time of the acknowledgement
//   stream_generation, stream_seq    which life of the stream stored it, and where
//
// Its attempts also have stream_seq and operation_id. All its events are published to one stream,
// whose lives are in stream_generations.

export interface OutboxTable extends LeasedTable<OutboxContent, Published> {
  table: Sql;
  attempts: Sql;
  keyOf: Sql; // the aggregate key of `row`, when it is republished
  layer: string; // of its dead letters, in the log of operations
}

export interface OutboxContent {
  event_type: string;
  payload: unknown;
  traceparent: string | null;
  age_seconds: number; // at the time of the claim
}

export type OutboxRow = LeasedRow<OutboxContent>;

interface OutboxNames {
  name: string;
  attempts: string;
  // Makes the key from the payload of `row`, if there may be rows whose key has an older form. Null
  // for the other rows.
  keyOf?: Sql;
  layer?: string; // no two services have the same
}

export function outboxTable(
  { name: table, attempts, keyOf, layer = "outbox" }: OutboxNames,
): OutboxTable {
  const leased = leasedTable<OutboxContent, Published>({
    name: table,
    id: "event_id",
    attempts,
    working: "IN_FLIGHT",
    order: oldestFirst("created_at"),
    content: sql`event_type, payload, traceparent,
    extract(epoch from locked_at - created_at)::float8 as age_seconds`,
    done: {
      status: "PUBLISHED",
      // published_at is the time of the acknowledgement: the database's time of the claim and the
      // time that has passed since. So it follows the order of events of one key, whenever each is
      // settled.
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
  return {
    ...leased,
    table: name(table),
    attempts: name(attempts),
    layer,
    keyOf: keyOf ? sql`coalesce(${keyOf}, row.aggregate_key)` : sql`row.aggregate_key`,
  };
}
