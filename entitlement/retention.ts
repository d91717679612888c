import type { Log } from "@kenri/shared/process/log.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { deleteInBatches } from "@kenri/shared/process/retention.ts";

export interface RetentionOptions {
  publishedTtlMs: number;
  auditMonths: number;
}

const monthsAhead = 3; // so that a job that fails for weeks is no incident

// Deletes what has served its time and keeps the audit partitions one step ahead. Rows are taken
// with SKIP LOCKED, so that several replicas share the work.
export async function cleanEntitlement(
  database: Database,
  options: RetentionOptions,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const partitionsMade = await makeAuditPartitions(database);
  const keys = await deleteInBatches((limit) => deleteExpiredKeys(database, limit), signal);
  const events = await deleteInBatches(
    (limit) => deletePublishedEvents(database, options.publishedTtlMs, limit),
    signal,
  );
  const partitionsDropped = await dropAuditPartitions(database, options.auditMonths);
  await tellOfLongerAudit(database, options.auditMonths, log);
  if (partitionsMade + keys + events + partitionsDropped > 0) {
    log.info("Retention deleted {keys} idempotency keys and {events} published events", {
      keys,
      events,
      partitionsMade,
      partitionsDropped,
    });
  }
}

async function deleteExpiredKeys(database: Database, limit: number): Promise<number> {
  const rows = await query(
    database,
    `with expired as (
       select idem_key
       from idempotency_keys
       where expires_at <= now()
       order by expires_at
       limit $1
       for update skip locked
     )
     delete from idempotency_keys stored
     using expired
     where stored.idem_key = expired.idem_key
     returning 1`,
    [limit],
  );
  return rows.length;
}

async function deletePublishedEvents(
  database: Database,
  ttlMs: number,
  limit: number,
): Promise<number> {
  const rows = await query(
    database,
    `with old as (
       select event_id
       from outbox_events
       where status = 'PUBLISHED'
         and published_at <= now() - make_interval(secs => $2::float8 / 1000)
       order by published_at
       limit $1
       for update skip locked
     ), attempts as (
       delete from outbox_attempts attempt
       using old
       where attempt.event_id = old.event_id
     )
     delete from outbox_events row
     using old
     where row.event_id = old.event_id
     returning 1`,
    [limit, ttlMs],
  );
  return rows.length;
}

async function makeAuditPartitions(database: Database): Promise<number> {
  const rows = await query<{ made: number }>(
    database,
    `select make_audit_partitions($1) as made`,
    [monthsAhead],
  );
  return rows[0]?.made ?? 0;
}

async function dropAuditPartitions(database: Database, keepMonths: number): Promise<number> {
  const rows = await query<{ dropped: number }>(
    database,
    `select drop_audit_partitions($1) as dropped`,
    [keepMonths],
  );
  return rows[0]?.dropped ?? 0;
}

// The database's owner has the last word, so that nobody who gets hold of the service can shorten it.
async function tellOfLongerAudit(database: Database, months: number, log: Log): Promise<void> {
  const [kept] = await query<{ keep_months: number }>(
    database,
    `select keep_months from audit_retention where keep_months > $1`,
    [months],
  );
  if (!kept) return;
  log.warn("The audit is kept for {kept} months, not {months}: the owner said so at `migrate`", {
    kept: kept.keep_months,
    months,
  });
}
