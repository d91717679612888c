import { expiredAnswers } from "@kenri/shared/commands/stored_answers.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { deleteOldRows } from "@kenri/shared/process/retention.ts";

export interface RetentionOptions {
  publishedTtlMs: number;
  doneReservationsTtlMs: number;
  auditMonths: number;
}

const publishedEvents = {
  table: "outbox_events",
  id: "event_id",
  condition: `status = 'PUBLISHED'
         and published_at <= now() - make_interval(secs => $2::float8 / 1000)
       order by published_at`,
  attempts: "outbox_attempts",
};

// Those that FAILED stay: they are dead letters.
const doneReservations = {
  table: "point_reservations",
  id: "id",
  condition: `status in ('DONE', 'CANCELLED')
         and done_at <= now() - make_interval(secs => $2::float8 / 1000)
       order by done_at`,
  attempts: "reservation_attempts",
};

const monthsAhead = 3; // so that even weeks of failing do no harm

// Deletes what is past its retention, and makes the coming partitions of the audit ahead of time.
export async function cleanEntitlement(
  database: Database,
  { publishedTtlMs, doneReservationsTtlMs, auditMonths }: RetentionOptions,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const partitionsMade = await makeAuditPartitions(database);
  const keys = await deleteOldRows(database, expiredAnswers, [], signal);
  const events = await deleteOldRows(database, publishedEvents, [publishedTtlMs], signal);
  const reservations = await deleteOldRows(
    database,
    doneReservations,
    [doneReservationsTtlMs],
    signal,
  );
  const partitionsDropped = await dropAuditPartitions(database, auditMonths);
  await warnOfLongerAudit(database, auditMonths, log);
  if (partitionsMade + keys + events + reservations + partitionsDropped > 0) {
    log.info(
      "Retention deleted {keys} idempotency keys, {events} published events and {reservations} reservations",
      { keys, events, reservations, partitionsMade, partitionsDropped },
    );
  }
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

// The owner of the database decides, so that nobody who takes over the service can shorten the
// audit.
async function warnOfLongerAudit(database: Database, months: number, log: Log): Promise<void> {
  const [kept] = await query<{ keep_months: number }>(
    database,
    `select keep_months from audit_retention where keep_months > $1`,
    [months],
  );
  if (!kept) return;
  log.warn(
    "The audit is kept for {kept} months, not {months}: `migrate` ran with the longer time",
    {
      kept: kept.keep_months,
      months,
    },
  );
}
