import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import { insertsEvents } from "@kenri/shared/outbox/announce.ts";
import { outboxTable } from "@kenri/shared/outbox/outbox_table.ts";
import type { RelayOptions } from "@kenri/shared/outbox/relay.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { WorkerConfig } from "@kenri/shared/process/service_settings.ts";
import type { Job } from "@kenri/shared/queue/job.ts";
import type { LeasedRow } from "@kenri/shared/queue/leased_row.ts";
import { byDueTime, leasedTable } from "@kenri/shared/queue/leased_table.ts";

export const outbox = outboxTable({ name: "outbox_events", attempts: "outbox_attempts" });

const firedEvents = sql`select id as event_id, 'ReminderFired' as event_type,
    user_id as aggregate_key, null as traceparent, clock_timestamp() as created_at,
    jsonb_build_object('user_id', user_id, 'text', text, 'occurred_at', now(), 'trace_id', id)
      as payload
  from changed`;

// The statement that marks a reminder as fired also announces its event: both are committed or
// neither.
export const reminders = leasedTable<Record<never, never>, void>({
  name: "reminders",
  id: "reminder_id",
  attempts: "reminder_attempts",
  working: "FIRING",
  order: byDueTime("due_at", "remind_at"),
  content: sql`remind_at`,
  done: {
    status: "FIRED",
    set: sql`fired_at = now()`,
    returning: sql`row.user_id, row.text`,
    also: sql`announced as (${insertsEvents(outbox, firedEvents)})`,
  },
});

export type ReminderRow = LeasedRow<Record<never, never>>;

export const firing = (database: Database, options: WorkerConfig): Job<ReminderRow, void> => ({
  name: "firing",
  ...options,
  ...reminders.jobOn(database, options),
  work: () => Promise.resolve({ kind: "done", result: undefined }), // an event is all there is to do
  stepOf: () => ({ name: "fire", kind: "internal" }),
});

export function published(stream: WantedStream): Pick<RelayOptions, "stream" | "types"> {
  const bytes = (event: unknown) => new TextEncoder().encode(JSON.stringify(event));
  const encode = (event_id: string, payload: unknown) => ({ body: bytes({ event_id, payload }) });
  return { stream, types: new Map([["ReminderFired", { subject: stream.subjects[0], encode }]]) };
}
