import {
  type EventTimeline,
  inOrder,
  maxEvents,
  readAsked,
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
import { listOf, sql } from "@kenri/shared/postgres/sql.ts";
import { uuidPattern } from "@kenri/shared/process/uuid.ts";
import type { Handler } from "hono";
import { type Action, eventTypeOf } from "../change.ts";
import { outbox } from "../outbox.ts";
import { timelineBy } from "./looks.ts";

// The steps of an event in this service: by its outbox row, its attempts and the audit, whose rows
// have the ids of their events.

export const eventsRoute = timelineRoute("account", timelineBy);

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
  if (!uuidPattern.test(userId)) return [];
  const rows = await query<{ audit_id: string }>(
    database,
    sql`
    select audit_id
    from audit_logs
    where user_id = ${userId}
    order by occurred_at desc, audit_id desc
    limit ${maxEvents}`,
  );
  return rows.map(({ audit_id }) => audit_id);
}

const events: TimelineTable = {
  table: outbox,
  columns: "event_type as type, stream_seq, payload",
  begun: { step: "CHANGED", at: "created_at" },
  done: { statuses: ["PUBLISHED"], at: "published_at" },
  attemptsHaveSequence: true,
};

interface OutboxRow extends TimelineRow {
  type: string;
  payload: Record<string, unknown> | null;
}

interface AuditRow extends Record<string, unknown> {
  event_id: string;
  occurred_at: string;
  user_id: string;
  action: Action | "REGISTER";
  version: number;
  trace_id: string;
}

const typeOf = { ...eventTypeOf, REGISTER: "UserRegistered" };

async function findTimelines(database: Database, ids: string[]): Promise<EventTimeline[]> {
  const [rows, changes] = await Promise.all([
    findRowTimelines<OutboxRow>(database, events, ids),
    findChanges(database, ids),
  ]);
  const changeOf = new Map(changes.map((change) => [change.event_id, change]));
  return ids.filter((id) => rows.has(id) || changeOf.has(id))
    .map((id) => toTimeline(id, rows.get(id), changeOf.get(id)));
}

function findChanges(database: Database, ids: string[]): Promise<AuditRow[]> {
  return query<AuditRow>(
    database,
    sql`
    select audit_id as event_id, ${utc(sql`occurred_at`)} as occurred_at, user_id, action, version,
      trace_id
    from audit_logs
    where audit_id = any(${listOf(ids)}::uuid[])`,
  );
}

// Without its outbox row the change is known from the audit alone, and after the retention of the
// audit an event that failed is known from its row alone.
function toTimeline(
  event_id: string,
  found: RowTimeline<OutboxRow> | undefined,
  change: AuditRow | undefined,
): EventTimeline {
  const payload = found?.row.payload ?? {};
  const textOf = (name: string) => typeof payload[name] === "string" ? `${payload[name]}` : null;
  return {
    event_id,
    user_id: change?.user_id ?? textOf("user_id"),
    stock_keeping_unit: null,
    version: change?.version ?? (Number(payload["version"]) || null),
    type: found?.row.type ?? (change ? typeOf[change.action] : null),
    trace_id: change?.trace_id ?? textOf("trace_id"),
    ...stateOf(found?.row, "DELETED"),
    steps: inOrder(found?.steps ?? [{ at: change?.occurred_at ?? "", step: events.begun.step }]),
  };
}
