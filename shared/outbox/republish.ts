import type { Operation } from "../operators/operations.ts";
import { recordsOperation } from "../operators/record_operation.ts";
import { literal, nothing, type Sql, sql } from "../postgres/sql.ts";
import type { OutboxTable } from "./outbox_table.ts";

// To republish an event is to put it back to PENDING, so that a relay publishes it again. Receivers
// that have it already remove it as a duplicate. There are four causes. Stored values, HTTP paths
// and the commands of `ops` are named after the cause:
//
//   cause                                outcome     operation   asked for by
//   the stream has lost it               LOST        none        the relay
//   an operator replays a range of time  REPLAYED    REPLAY      ops replay
//   it was not received                  MENDED      MEND        reconciliation, ops reconcile
//   it is a dead letter                  SENT_BACK   SEND_BACK   ops dead send-back

export type Cause = keyof typeof causes;

const place = sql`'from', state, 'stream_seq', stream_seq`;
const failure = sql`'from', state, 'error', last_error`;

const causes = {
  lost: { outcome: "LOST", kind: "", shows: nothing },
  replayed: { outcome: "REPLAYED", kind: "REPLAY", shows: place },
  unreceived: { outcome: "MENDED", kind: "MEND", shows: place },
  dead: { outcome: "SENT_BACK", kind: "SEND_BACK", shows: failure },
};

export interface RepublishCounts extends Record<string, unknown> {
  found: number;
  republished: number;
}

// The end of every statement that republishes events. They are those of its part `chosen`, which
// has their event_id, state and stream_seq, and the last_error of dead letters. That part locks them
// in the order of their ids, so that no two statements can deadlock, and chooses only those that are
// still in the state in which they were found.
export function republishes(outbox: OutboxTable, cause: Cause, operation?: Operation): Sql {
  const { outcome, kind, shows } = causes[cause];
  const recorded = {
    kind,
    layer: outbox.layer,
    item: sql`'event_id', event_id, ${shows}`,
    of: "chosen",
  };
  return sql`attempts as (
       insert into ${outbox.attempts} (event_id, outcome, stream_seq, operation_id)
       select event_id, ${literal(outcome)}, stream_seq, ${operation?.id}::uuid
       from chosen
     ), ${operation ? sql`${recordsOperation(operation, recorded)},` : nothing}
     republished as (
       update ${outbox.table} row
       set status = 'PENDING',
         attempt_count = 0,
         next_retry_at = null,
         published_at = null,
         stream_generation = null,
         stream_seq = null,
         aggregate_key = ${outbox.keyOf},
         last_error = ${cause === "lost" ? sql`'lost by the stream'` : sql`row.last_error`}
       from chosen
       where row.event_id = chosen.event_id
       returning row.event_id
     )`;
}
