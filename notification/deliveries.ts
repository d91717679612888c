import { sql } from "@kenri/shared/postgres/sql.ts";
import type { LeasedRow } from "@kenri/shared/queue/leased_row.ts";
import { leasedTable, oldestFirstByVersion } from "@kenri/shared/queue/leased_table.ts";
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

export type NotificationContent = Omit<Send, "notification_id"> & {
  traceparent: string | null;
  age_seconds: number; // of its event, when it was claimed
};
export type NotificationRow = LeasedRow<NotificationContent>;

export interface Sent {
  sentAt: number; // by performance.now()
}

export const notifications = leasedTable<NotificationContent, Sent>({
  name: "notifications",
  id: "notification_id",
  attempts: "delivery_attempts",
  working: "PROCESSING",
  order: oldestFirstByVersion("created_at", "version"),
  content: sql`event_id, user_id, type, payload_json as payload, traceparent,
    extract(epoch from locked_at - occurred_at)::float8 as age_seconds`,
  // A predecessor that is received later must not make a retry due at once.
  claimSets: sql`awaits_predecessor = false`,
  done: {
    status: "SENT",
    // sent_at is the time at which the channel accepted the notification: the database's time of the
    // claim plus the time that has passed since. So the versions of one key have times in the order
    // of their sends, no matter when each is settled.
    set: sql`sent_at = row.locked_at + make_interval(secs => settled.after_ms / 1000)`,
    values: { after_ms: { type: "float8", of: (row, { sentAt }) => sentAt - row.claimedAt } },
  },
  // One statement sets FAILED and writes the dead letter, so neither exists without the other.
  failed: {
    returning: sql`row.event_id, row.payload_json`,
    also: sql`dead_letter as (
  insert into notification_dlq (notification_id, event_id, payload_json, error_message)
  select id, event_id, payload_json, error from changed
  on conflict (notification_id) do nothing
)`,
  },
});
