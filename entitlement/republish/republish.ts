// To republish an event is to put it back to PENDING, so that a relay publishes it again. Receivers
// that have it already remove it as a duplicate. There are four causes, and each has its statement
// beside this file. Stored values, HTTP paths and the commands of `ops` are named after the cause:
//
//   cause                                outcome     operation   asked for by
//   the stream has lost it               LOST        none        the relay
//   an operator replays a range of time  REPLAYED    REPLAY      ops replay
//   it was not received                  MENDED      MEND        reconciliation, ops reconcile
//   it is a dead letter                  SENT_BACK   SEND_BACK   ops dead send-back
//
// Every statement locks its events in the order of their ids, so no two of them can deadlock, and
// changes only those that are still in the state in which they were found.

export interface RepublishCounts extends Record<string, unknown> {
  found: number;
  republished: number;
}

// The key is made anew: a row that was finished before migration 0007 has a key of the old form,
// and would not be ordered with rows that were written since.
export const becomesPending = `status = 'PENDING', attempt_count = 0, next_retry_at = null,
         published_at = null, stream_generation = null, stream_seq = null,
         aggregate_key = coalesce(
           aggregate_key_of(row.payload->>'user_id', row.payload->>'stock_keeping_unit'),
           row.aggregate_key)`;

// Records an attempt for each of the `chosen` events. $1 is the id of the operation.
export function recordsAttempts(outcome: string, operationId = "$1::uuid"): string {
  return `attempts as (
       insert into outbox_attempts (event_id, outcome, stream_seq, operation_id)
       select event_id, '${outcome}', stream_seq, ${operationId} from chosen
     )`;
}

// Records the operation, unless nothing was chosen. $1 is its id, $2 says who, $3 says why.
export function recordsOperation(kind: string, fields: string): string {
  return `operation as (
       insert into operations (operation_id, kind, layer, who, reason, items)
       select $1, '${kind}', 'outbox', $2, $3,
         jsonb_agg(jsonb_build_object('event_id', event_id, ${fields}))
       from chosen
       having count(*) > 0
     )`;
}
