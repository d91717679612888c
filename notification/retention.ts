import type { Log } from "@kenri/shared/process/log.ts";
import { type Database, query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { deleteOldRows } from "@kenri/shared/process/retention.ts";
import { expiredAnswers } from "@kenri/shared/commands/stored_answers.ts";
import { overdueNotifications } from "./metrics.ts";

export interface RetentionOptions {
  days: number;
  ledgerTtlMs: number;
}

const seenEvents = {
  table: "processed_events",
  id: "event_id",
  condition: "processed_at < now() - make_interval(days => $2)",
};

const finishedNotifications = {
  table: "notifications",
  id: "notification_id",
  condition: `created_at < now() - make_interval(days => $2)
         and status in ('SENT', 'FAILED')`,
  attempts: "delivery_attempts",
};

const finishedOrders = {
  table: "outbox_orders",
  id: "id",
  condition: `finished_at < now() - make_interval(days => $2)
         and status in ('SUCCEEDED', 'ABORTED')`,
  attempts: "order_attempts",
};

const oldEntries = {
  table: "idempo_ledger",
  id: "idempotency_key",
  condition: "decided_at < now() - make_interval(secs => $2::float8 / 1000)",
};

const expiredSecrets = {
  table: "endpoint_secrets",
  id: "secret_id",
  condition: "expires_at <= now()",
};

// Deletes what is past its retention. A notification that is as old and still unfinished is an
// anomaly: it is kept and reported.
export async function cleanNotification(
  database: Database | Transaction,
  { days, ledgerTtlMs }: RetentionOptions,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const events = await deleteOldRows(database, seenEvents, [days], signal);
  const notifications = await deleteOldRows(database, finishedNotifications, [days], signal);
  if (events + notifications > 0) {
    log.info("Retention deleted {events} processed events and {notifications} notifications", {
      events,
      notifications,
    });
  }
  const orders = await deleteOldRows(database, finishedOrders, [days], signal);
  const entries = await deleteOldRows(database, oldEntries, [ledgerTtlMs], signal);
  if (orders + entries > 0) {
    log.info("Retention deleted {orders} orders and {entries} entries of the ledger", {
      orders,
      entries,
    });
  }
  await deleteOldRows(database, expiredAnswers, [], signal);
  await deleteOldRows(database, expiredSecrets, [], signal);
  const overdue = await countOverdue(database, days);
  overdueNotifications.set(overdue);
  if (overdue > 0) {
    log.error("{overdue} notifications are older than {days} days and not finished", {
      overdue,
      days,
    });
  }
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
