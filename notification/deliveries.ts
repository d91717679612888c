import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Settlement } from "@kenri/shared/queue/job.ts";
import { claimDue } from "@kenri/shared/queue/claims.ts";
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
import type { Send } from "./channels/channel.ts";

// The states of a notification and every move between them:
//   (new) → PENDING           received
//   (new) → PROCESSING        received, with a lease for the delivery of the same process
//   PENDING → PROCESSING      claimed
//   PROCESSING → PROCESSING   claimed again after the lease expired
//   PROCESSING → SENT         accepted by the channel
//   PROCESSING → PENDING      failed and due for a retry, or released
//   PROCESSING → FAILED       attempts used up; the same statement writes the dead letter
//   FAILED → PENDING          sent back, and the dead letter is deleted (dead_deliveries.ts)

export const notifications: LeasedTable = {
  name: "notifications",
  id: "notification_id",
  attempts: "delivery_attempts",
  working: "PROCESSING",
  positionColumn: "version",
  claimOrder: "created_at, version",
  columns: "event_id, user_id, type, payload_json as payload, traceparent, " +
    "extract(epoch from locked_at - occurred_at)::float8 as age_seconds",
  // A predecessor that is received later must not make a retry due at once.
  endsWithClaim: "awaits_predecessor = false",
};

export type NotificationContent = Omit<Send, "notification_id"> & {
  traceparent: string | null;
  age_seconds: number; // of its event, when it was claimed
};
export type NotificationRow = LeasedRow<NotificationContent>;

export interface Sent {
  sentAt: number; // by performance.now()
}

export function claimNotifications(
  database: Database,
  lease: Lease,
  limit: number,
): Promise<NotificationRow[]> {
  return claimDue(database, notifications, lease, limit);
}

export function keepNotifications(
  database: Database,
  rows: NotificationRow[],
  leaseMs: number,
): Promise<Set<string>> {
  return extendLeases(database, notifications, rows, leaseMs);
}

export function settleNotifications(
  database: Database,
  settled: Settlement<NotificationRow, Sent>[],
): Promise<Set<string>> {
  return settleEach(
    database,
    notifications,
    settled,
    (done) => markSent(database, done),
    (failures) => markFailed(database, failures),
  );
}

// sent_at is the time at which the channel accepted the notification: the database's time of the
// claim plus the time that has passed since. So the versions of one key have times in the order of
// their sends, no matter when each is settled.
function markSent(
  database: Database,
  done: { row: NotificationRow; result: Sent }[],
): Promise<string[]> {
  return settleRows(
    database,
    done,
    [listOf(done.map(({ row, result }) => result.sentAt - row.claimedAt))],
    `changed as (
       update notifications row
       set status = 'SENT',
         sent_at = row.locked_at + make_interval(secs => sent.after_ms / 1000),
         ${leaseEnds}
       from unnest($1::uuid[], $2::uuid[], $3::float8[]) as sent (id, token, after_ms)
       where row.notification_id = sent.id
         and row.claim_token = sent.token
       returning row.notification_id as id)`,
  );
}

// One statement sets FAILED and writes the dead letter, so neither exists without the other.
function markFailed(
  database: Database,
  failures: { row: NotificationRow; error: string; attempted: boolean }[],
): Promise<string[]> {
  return settleRows(
    database,
    failures,
    [failures.map(({ error }) => error), failures.map(({ attempted }) => attempted)],
    `${failsForGood(notifications, ", row.event_id, row.payload_json")}, dead_letter as (
       insert into notification_dlq (notification_id, event_id, payload_json, error_message)
       select id, event_id, payload_json, error from changed
       on conflict (notification_id) do nothing)`,
  );
}
