import type { Log } from "@kenri/shared/process/log.ts";
import { type Database, query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { deleteInBatches } from "@kenri/shared/process/retention.ts";
import { overdueNotifications } from "./metrics.ts";

export interface RetentionOptions {
  days: number;
}

// Deletes what has served its time. What should have been sent long ago and was not is an anomaly:
// it is kept and reported.
export async function cleanNotification(
  database: Database | Transaction,
  { days }: RetentionOptions,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const events = await deleteInBatches((limit) => deleteEvents(database, days, limit), signal);
  const notifications = await deleteInBatches(
    (limit) => deleteFinishedNotifications(database, days, limit),
    signal,
  );
  if (events + notifications > 0) {
    log.info("Retention deleted {events} processed events and {notifications} notifications", {
      events,
      notifications,
    });
  }
  const overdue = await countOverdue(database, days);
  overdueNotifications.set(overdue);
  if (overdue > 0) {
    log.error("{overdue} notifications are older than {days} days and not finished", {
      overdue,
      days,
    });
  }
}

async function deleteEvents(
  database: Database | Transaction,
  days: number,
  limit: number,
): Promise<number> {
  const rows = await query(
    database,
    `with old as (
       select event_id
       from processed_events
       where processed_at < now() - make_interval(days => $2)
       limit $1
       for update skip locked
     )
     delete from processed_events event
     using old
     where event.event_id = old.event_id
     returning 1`,
    [limit, days],
  );
  return rows.length;
}

async function deleteFinishedNotifications(
  database: Database | Transaction,
  days: number,
  limit: number,
): Promise<number> {
  const rows = await query(
    database,
    `with old as (
       select notification_id
       from notifications
       where created_at < now() - make_interval(days => $2)
         and status in ('SENT', 'FAILED')
       limit $1
       for update skip locked
     ), attempts as (
       delete from delivery_attempts attempt
       using old
       where attempt.notification_id = old.notification_id
     )
     delete from notifications row
     using old
     where row.notification_id = old.notification_id
     returning 1`,
    [limit, days],
  );
  return rows.length;
}

async function countOverdue(database: Database | Transaction, days: number): Promise<number> {
  const rows = await query<{ overdue: number }>(
    database,
    `select count(*) as overdue
     from notifications
     where unfinished
       and created_at < now() - make_interval(days => $1)`,
    [days],
  );
  return rows[0]?.overdue ?? 0;
}
