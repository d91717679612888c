import { claimDue, claimRepeatedly } from "@kenri/shared/queue/claims.ts";
import {
  extendLeases,
  failsForGood,
  type Lease,
  type LeasedRow,
  type LeasedTable,
  leaseEnds,
  listOf,
  settleEach,
  settleRows,
} from "@kenri/shared/queue/leases.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Settlement } from "@kenri/shared/queue/job.ts";

// The states of an outbox row and every move between them:
//   PENDING → IN_FLIGHT      claimed (or inserted as IN_FLIGHT, for the relay of the same process)
//   IN_FLIGHT → IN_FLIGHT    claimed again, because the lease ran out
//   IN_FLIGHT → PUBLISHED    acknowledged by the stream
//   IN_FLIGHT → PENDING      failed and to be retried, or released
//   IN_FLIGHT → FAILED       failed for good
//   PUBLISHED → PENDING      republished: lost by the stream, replayed, or not received
//   FAILED → PENDING         republished: it was a dead letter

export const outbox: LeasedTable = {
  name: "outbox_events",
  id: "event_id",
  attempts: "outbox_attempts",
  working: "IN_FLIGHT",
  positionColumn: "created_at",
  claimOrder: "created_at",
  columns: "event_type, payload, traceparent, " +
    "extract(epoch from locked_at - created_at)::float8 as age_seconds",
};

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

export function claimEvents(database: Database, lease: Lease, limit: number): Promise<OutboxRow[]> {
  return claimDue(database, outbox, lease, limit);
}

export function claimEventsRepeatedly(
  database: Database,
  lease: Lease & { pollIntervalMs: number },
): (limit: number) => Promise<OutboxRow[]> {
  return claimRepeatedly(database, outbox, lease);
}

export function keepEvents(
  database: Database,
  rows: OutboxRow[],
  leaseMs: number,
): Promise<Set<string>> {
  return extendLeases(database, outbox, rows, leaseMs);
}

export function settleEvents(
  database: Database,
  settled: Settlement<OutboxRow, Published>[],
): Promise<Set<string>> {
  return settleEach(
    database,
    outbox,
    settled,
    (done) => markPublished(database, done),
    (failures) => markFailed(database, failures),
  );
}

// published_at is the time of the acknowledgement: the database's time of the claim and the time
// that has passed since. So it follows the order of events of one key, whenever each is settled.
function markPublished(
  database: Database,
  done: { row: OutboxRow; result: Published }[],
): Promise<string[]> {
  return settleRows(
    database,
    done,
    [
      listOf(done.map(({ result }) => result.generation)),
      listOf(done.map(({ result }) => result.sequence)),
      listOf(done.map(({ row, result }) => result.ackedAt - row.claimedAt)),
    ],
    `changed as (
       update outbox_events row
       set status = 'PUBLISHED',
         published_at = row.locked_at + make_interval(secs => acked.after_ms / 1000),
         stream_generation = acked.generation,
         stream_seq = acked.sequence,
         ${leaseEnds}
       from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::float8[])
         as acked (id, token, generation, sequence, after_ms)
       where row.event_id = acked.id
         and row.claim_token = acked.token
       returning row.event_id as id)`,
  );
}

function markFailed(
  database: Database,
  failures: { row: OutboxRow; error: string; attempted: boolean }[],
): Promise<string[]> {
  return settleRows(
    database,
    failures,
    [failures.map(({ error }) => error), failures.map(({ attempted }) => attempted)],
    failsForGood(outbox),
  );
}
