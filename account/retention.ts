import type { Log } from "@kenri/shared/process/log.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { deleteOldRows } from "@kenri/shared/process/retention.ts";

export interface RetentionOptions {
  publishedTtlMs: number;
  auditDays: number;
}

const publishedEvents = {
  table: "outbox_events",
  id: "event_id",
  condition: `status = 'PUBLISHED'
         and published_at <= now() - make_interval(secs => $2::float8 / 1000)
       order by published_at`,
  attempts: "outbox_attempts",
};

// A gateway whose clock is late accepts a session for longer.
const expiredSessions = {
  table: "ended_sessions",
  id: "session_id",
  condition: `expires_at <= now() - interval '1 hour'
       order by expires_at`,
};

export async function cleanAccount(
  database: Database,
  { publishedTtlMs, auditDays }: RetentionOptions,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const events = await deleteOldRows(database, publishedEvents, [publishedTtlMs], signal);
  const sessions = await deleteOldRows(database, expiredSessions, [], signal);
  const audit = await deleteOldAudit(database, auditDays, signal);
  if (events + sessions + audit > 0) {
    log.info(
      "Retention deleted {events} published events, {sessions} ended sessions and {audit} audit rows",
      { events, sessions, audit },
    );
  }
}

async function deleteOldAudit(
  database: Database,
  days: number,
  signal: AbortSignal,
): Promise<number> {
  let total = 0;
  while (!signal.aborted) {
    const [row] = await query<{ deleted: number }>(
      database,
      `select delete_old_audit($1) as deleted`,
      [days],
    );
    total += row?.deleted ?? 0;
    if (!row?.deleted) break;
  }
  return total;
}
