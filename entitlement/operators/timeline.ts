import { findAttempts } from "@kenri/shared/queue/attempts.ts";
import { isUnfinishedByKey, listOf } from "@kenri/shared/queue/leases.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import {
  type EventTimeline,
  inOrder,
  maxEvents,
  readAsked,
  type Step,
  timelineRoute,
} from "@kenri/shared/operators/timeline.ts";
import { z } from "@hono/zod-openapi";
import type { Handler } from "hono";
import { eventTypeOf } from "../entitlement.ts";

// This service's half of an event's timeline: from the change to the stream.

const askedBy = ["event_id", "user_id", "idempotency_key"] as const;

const keySchema = z.object({
  idempotency_key: z.string(),
  caller: z.string(),
  at: z.string(),
  expires_at: z.string(),
  status: z.int(),
  body: z.unknown(),
}).openapi("StoredAnswer");

export type StoredAnswer = z.infer<typeof keySchema>;

export const eventsRoute = timelineRoute("entitlement", askedBy, {
  key: keySchema.optional().openapi({ description: "The answer that is stored under the key" }),
});

export function timeline(database: Database): Handler {
  return async ({ req }) => {
    const asked = readAsked(req.query(), askedBy);
    switch (asked.by) {
      case "event_id":
        return Response.json({ events: await findTimelines(database, asked.value) });
      case "user_id": {
        const ids = await findEventsOfUser(database, asked.value);
        return Response.json({ events: await findTimelines(database, ids) });
      }
      case "idempotency_key": {
        const [key] = await findKey(database, asked.value);
        if (!key) return Response.json({ events: [] });
        const { event_id, ...stored } = key;
        const events = await findTimelines(database, event_id ? [event_id] : []);
        return Response.json({ events, key: { ...keyIn(asked.value), ...stored } });
      }
    }
  };
}

interface KeyRow extends Record<string, unknown> {
  event_id: string | null;
}

// The reverse of storedKeyOf.
function keyIn(stored: string): { idempotency_key: string; caller: string } {
  const at = stored.lastIndexOf(" ");
  return { idempotency_key: stored.slice(at + 1), caller: stored.slice(0, Math.max(at, 0)) };
}

// Only the answer to a change that was made tells the time of an event, and the audit goes by time.
function findKey(database: Database, key: string): Promise<KeyRow[]> {
  return query<KeyRow>(
    database,
    `select ${utc("stored.created_at")} as at,
       ${utc("stored.expires_at")} as expires_at, stored.response_code as status,
       stored.response_body::json as body, audit.audit_id as event_id
     from idempotency_keys stored
     left join entitlement_audit audit
       on audit.occurred_at = (stored.response_body::json->>'updated_at')::timestamptz
       and audit.user_id = stored.response_body::json->>'user_id'
       and audit.stock_keeping_unit = stored.response_body::json->>'stock_keeping_unit'
     where stored.idem_key = $1`,
    [key],
  );
}

// The last event of each of the user's entitlements, and those that wait to be published. Earlier
// ones are found by their ids, which the notification service knows by user.
async function findEventsOfUser(database: Database, userId: string): Promise<string[]> {
  const rows = await query<{ event_id: string }>(
    database,
    `with entitlement as materialized (
       select user_id, stock_keeping_unit, updated_at
       from entitlements
       where user_id = $1
       order by updated_at desc
       limit $2
     )
     select audit.audit_id as event_id, audit.occurred_at as created_at
     from entitlement
     join entitlement_audit audit
       on audit.occurred_at = entitlement.updated_at
       and audit.user_id = entitlement.user_id
       and audit.stock_keeping_unit = entitlement.stock_keeping_unit
     union
     select row.event_id, row.created_at
     from entitlement
     join outbox_events row
       on ${isUnfinishedByKey("row")}
       and row.aggregate_key =
         aggregate_key_of(entitlement.user_id, entitlement.stock_keeping_unit)
     order by created_at desc
     limit $2`,
    [userId, maxEvents],
  );
  return rows.map(({ event_id }) => event_id);
}

interface OutboxRow extends Record<string, unknown> {
  event_id: string;
  type: string;
  status: string;
  attempt_count: number;
  created_at: string;
  next_retry_at: string | null;
  published_at: string | null;
  locked_at: string | null;
  lease_until: string | null;
  locked_by: string | null;
  last_error: string | null;
  stream_seq: number | null;
  payload: Record<string, unknown> | null;
}

interface AuditRow extends Record<string, unknown> {
  event_id: string;
  occurred_at: string;
  user_id: string;
  stock_keeping_unit: string;
  action: "GRANT" | "REVOKE";
  request_id: string;
  caller: string | null;
  version: number;
  trace_id: string;
}

async function findTimelines(database: Database, ids: string[]): Promise<EventTimeline[]> {
  if (ids.length === 0) return [];
  const [rows, attempts] = await Promise.all([
    findOutboxRows(database, ids),
    findAttempts(database, { name: "outbox_attempts", id: "event_id", withSequence: true }, ids),
  ]);
  const rowOf = new Map(rows.map((row) => [row.event_id, row]));
  const changes = await findChanges(database, ids, rowOf);
  const changeOf = new Map(changes.map((change) => [change.event_id, change]));
  return ids.filter((id) => rowOf.has(id) || changeOf.has(id)).map((id) =>
    toTimeline(id, rowOf.get(id), changeOf.get(id), attempts.get(id) ?? [])
  );
}

function findOutboxRows(database: Database, ids: string[]): Promise<OutboxRow[]> {
  return query<OutboxRow>(
    database,
    `select event_id, event_type as type, status, attempt_count, ${utc("created_at")} as created_at,
       ${utc("next_retry_at")} as next_retry_at, ${utc("published_at")} as published_at,
       ${utc("locked_at")} as locked_at, ${utc("lease_until")} as lease_until, locked_by,
       last_error, stream_seq, payload
     from outbox_events
     where event_id = any($1::uuid[])`,
    [listOf(ids)],
  );
}

// The audit goes by time and then by id. Without its outbox row an event's time is that of its id,
// as far as the service's clock agrees with the database's.
const clocksDifferMs = 5_000;

function findChanges(
  database: Database,
  ids: string[],
  rowOf: Map<string, OutboxRow>,
): Promise<AuditRow[]> {
  return query<AuditRow>(
    database,
    `select audit.audit_id as event_id, ${utc("audit.occurred_at")} as occurred_at, audit.user_id,
       audit.stock_keeping_unit, audit.action, audit.request_id, audit.caller,
       (audit.detail->>'version')::bigint as version, audit.detail->>'trace_id' as trace_id
     from unnest($1::uuid[], $2::text[], $3::float8[], $4::float8[])
       as wanted (event_id, created_at, earliest, latest)
     join entitlement_audit audit
       on audit.audit_id = wanted.event_id
       and audit.occurred_at >= coalesce(wanted.created_at::timestamptz, to_timestamp(earliest))
       and audit.occurred_at <= coalesce(wanted.created_at::timestamptz, to_timestamp(latest))`,
    [
      listOf(ids),
      ids.map((id) => rowOf.get(id)?.created_at ?? null),
      listOf(ids.map((id) => (timeOf(id) - clocksDifferMs) / 1_000)),
      listOf(ids.map((id) => (timeOf(id) + clocksDifferMs) / 1_000)),
    ],
  );
}

// A UUID of version 7 begins with its milliseconds.
function timeOf(id: string): number {
  return parseInt(id.replaceAll("-", "").slice(0, 12), 16);
}

function toTimeline(
  event_id: string,
  row: OutboxRow | undefined,
  change: AuditRow | undefined,
  attempts: Step[],
): EventTimeline {
  const payload = row?.payload ?? {};
  const textOf = (name: string) => typeof payload[name] === "string" ? `${payload[name]}` : null;
  return {
    event_id,
    user_id: change?.user_id ?? textOf("user_id"),
    stock_keeping_unit: change?.stock_keeping_unit ?? textOf("stock_keeping_unit"),
    version: change?.version ?? (Number(payload["version"]) || null),
    type: row?.type ?? (change ? eventTypeOf[change.action] : null),
    status: row?.status ?? "DELETED",
    trace_id: change?.trace_id ?? textOf("trace_id"),
    idempotency_key: change?.request_id ?? null,
    caller: change?.caller ?? null,
    attempt_count: row?.attempt_count ?? 0,
    next_retry_at: row?.next_retry_at ?? null,
    steps: inOrder([
      { at: change?.occurred_at ?? row?.created_at ?? "", step: "CHANGED" },
      ...attempts,
      ...(row ? presentOf(row) : []),
    ]),
  };
}

function presentOf(row: OutboxRow): Step[] {
  const { status, published_at, stream_seq, locked_at, locked_by } = row;
  if (status === "PUBLISHED" && published_at) {
    return [{ at: published_at, step: "PUBLISHED", stream_seq }];
  }
  if (status === "IN_FLIGHT" && locked_at) {
    return [{ at: locked_at, step: "IN_FLIGHT", worker: locked_by }];
  }
  return [];
}
