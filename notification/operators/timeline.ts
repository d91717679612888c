import {
  claimedStep,
  type EventTimeline,
  inOrder,
  maxEvents,
  readAsked,
  type Step,
  timelineRoute,
  type TimelineRow,
} from "@kenri/shared/operators/timeline.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { findAttempts } from "@kenri/shared/queue/attempts.ts";
import { listOf } from "@kenri/shared/queue/leased_row.ts";
import type { Handler } from "hono";
import { timelineBy } from "./looks.ts";

// The timelines of events in this service, from the stream to the send.

export const eventsRoute = timelineRoute("notification", timelineBy);

export function timeline(database: Database): Handler {
  return async ({ req }) => {
    const asked = readAsked(req.query(), timelineBy);
    const ids = asked.by === "event_id"
      ? asked.value
      : await findEventsOfUser(database, asked.value);
    return Response.json({ events: await findTimelines(database, ids) });
  };
}

async function findEventsOfUser(database: Database, userId: string): Promise<string[]> {
  const rows = await query<{ event_id: string }>(
    database,
    `select event_id
     from notifications
     where user_id = $1
     order by created_at desc, notification_id desc
     limit $2`,
    [userId, maxEvents],
  );
  return rows.map(({ event_id }) => event_id);
}

interface NotificationRow extends TimelineRow {
  notification_id: string;
  user_id: string;
  stock_keeping_unit: string | null;
  version: number;
  trace_id: string | null;
  sent_at: string | null;
}

interface CapturedRow extends Record<string, unknown> {
  event_id: string;
  at: string;
  error: string;
  stream_seq: number;
}

async function findTimelines(database: Database, ids: string[]): Promise<EventTimeline[]> {
  if (ids.length === 0) return [];
  const [rows, captured] = await Promise.all([
    findNotifications(database, ids),
    findCaptured(database, ids),
  ]);
  const attempts = await findAttempts(
    database,
    { name: "delivery_attempts", id: "notification_id", withSequence: false },
    rows.map(({ notification_id }) => notification_id),
  );
  const rowOf = new Map(rows.map((row) => [row.event_id, row]));
  const capturedOf = Map.groupBy(captured, ({ event_id }) => event_id);
  return ids.flatMap((id) => {
    const row = rowOf.get(id);
    const losses = (capturedOf.get(id) ?? []).map(({ at, error, stream_seq }) => ({
      at,
      step: "CAPTURED",
      error,
      stream_seq,
    }));
    if (!row) return losses.length > 0 ? [toTimeline(id, row, losses)] : [];
    return [toTimeline(id, row, [...losses, ...attempts.get(row.notification_id) ?? []])];
  });
}

function findNotifications(database: Database, ids: string[]): Promise<NotificationRow[]> {
  return query<NotificationRow>(
    database,
    `select notification_id, event_id, user_id,
       payload_json->>'stock_keeping_unit' as stock_keeping_unit, version, type, status,
       payload_json->>'trace_id' as trace_id, attempt_count,
       ${utc("next_retry_at")} as next_retry_at, ${utc("created_at")} as created_at,
       ${utc("sent_at")} as sent_at, ${utc("locked_at")} as locked_at, locked_by
     from notifications
     where event_id = any($1::uuid[])`,
    [listOf(ids)],
  );
}

function findCaptured(database: Database, ids: string[]): Promise<CapturedRow[]> {
  return query<CapturedRow>(
    database,
    `select message_headers->'Nats-Msg-Id'->>0 as event_id, ${utc("advised_at")} as at,
       coalesce(reason, kind) as error, stream_seq
     from notification_nats_dlq
     where message_headers->'Nats-Msg-Id'->>0 = any($1::text[])
     order by dlq_id`,
    [listOf(ids)],
  );
}

function toTimeline(
  event_id: string,
  row: NotificationRow | undefined,
  attempts: Step[],
): EventTimeline {
  return {
    event_id,
    user_id: row?.user_id ?? null,
    stock_keeping_unit: row?.stock_keeping_unit ?? null,
    version: row?.version ?? null,
    type: row?.type ?? null,
    status: row?.status ?? "NOT_RECEIVED",
    trace_id: row?.trace_id ?? null,
    attempt_count: row?.attempt_count ?? 0,
    next_retry_at: row?.next_retry_at ?? null,
    steps: inOrder([
      row && { at: row.created_at, step: "RECEIVED" },
      ...attempts,
      row?.status === "SENT" && row.sent_at ? { at: row.sent_at, step: "SENT" } : undefined,
      row && claimedStep(row, "PROCESSING"),
    ]),
  };
}
