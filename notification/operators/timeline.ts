import {
  type Asked,
  type EventTimeline,
  inOrder,
  maxEvents,
  readAsked,
  type Step,
  timelineRoute,
} from "@kenri/shared/operators/timeline.ts";
import {
  findRowTimelines,
  type RowTimeline,
  stateOf,
  type TimelineRow,
  type TimelineTable,
} from "@kenri/shared/operators/timeline_rows.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { listOf } from "@kenri/shared/postgres/sql.ts";
import type { Handler } from "hono";
import { notifications } from "../deliveries.ts";
import { timelineBy } from "./looks.ts";
import { findOrderSteps, findOrderTimelines, findOrderUnder } from "./orders/order_timelines.ts";

// The timelines of events in this service, from the stream to all sends, and of single orders.

export const eventsRoute = timelineRoute("notification", timelineBy);

export function timeline(database: Database): Handler {
  return async ({ req }) => {
    const asked = readAsked(req.query(), timelineBy);
    return Response.json({ events: await findAsked(database, asked) });
  };
}

async function findAsked(
  database: Database,
  asked: Asked<(typeof timelineBy)[number]>,
): Promise<EventTimeline[]> {
  switch (asked.by) {
    case "event_id":
      return await findTimelines(database, asked.value);
    case "user_id":
      return await findTimelines(database, await findEventsOfUser(database, asked.value));
    case "order_id":
      return await findOrderTimelines(database, [asked.value]);
    case "idempotency_key":
      return await findOrderTimelines(database, await findOrderUnder(database, asked.value));
  }
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

const events: TimelineTable = {
  table: notifications,
  columns: `user_id, version, type,
       coalesce(payload_json->>'stock_keeping_unit', 'points:' || (payload_json->>'unit'),
         payload_json->>'ticket_id') as stock_keeping_unit,
       payload_json->>'trace_id' as trace_id`,
  begun: { step: "RECEIVED", at: "created_at" },
  done: { statuses: ["SENT"], at: "sent_at" },
  attemptsHaveSequence: false,
};

interface NotificationRow extends TimelineRow {
  user_id: string;
  stock_keeping_unit: string | null;
  version: number;
  type: string;
  trace_id: string | null;
}

interface CapturedRow extends Record<string, unknown> {
  event_id: string;
  at: string;
  error: string;
  stream_seq: number;
}

async function findTimelines(database: Database, ids: string[]): Promise<EventTimeline[]> {
  if (ids.length === 0) return [];
  const [rows, captured, orders] = await Promise.all([
    findRowTimelines<NotificationRow>(database, events, ids),
    findCaptured(database, ids),
    findOrderSteps(database, ids),
  ]);
  const capturedOf = Map.groupBy(captured, ({ event_id }) => event_id);
  return ids.filter((id) => rows.has(id) || capturedOf.has(id) || orders.has(id)).map((id) =>
    toTimeline(id, rows.get(id), capturedOf.get(id) ?? [], orders.get(id) ?? [])
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
  found: RowTimeline<NotificationRow> | undefined,
  captured: CapturedRow[],
  orders: Step[],
): EventTimeline {
  return {
    event_id,
    user_id: found?.row.user_id ?? null,
    stock_keeping_unit: found?.row.stock_keeping_unit ?? null,
    version: found?.row.version ?? null,
    type: found?.row.type ?? null,
    trace_id: found?.row.trace_id ?? null,
    ...stateOf(found?.row, "NOT_RECEIVED"),
    steps: inOrder([
      ...captured.map(({ at, error, stream_seq }) => ({ at, step: "CAPTURED", error, stream_seq })),
      ...found?.steps ?? [],
      ...orders,
    ]),
  };
}
