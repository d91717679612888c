import {
  claimedStep,
  type EventTimeline,
  inOrder,
  type Step,
  type TimelineRow,
} from "@kenri/shared/operators/timeline.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { findAttempts } from "@kenri/shared/queue/attempts.ts";
import { listOf } from "@kenri/shared/queue/leased_row.ts";
import { eventTypeOf } from "../entitlement.ts";

// The steps of an event in this service, from the change to the stream: by its outbox row, its
// attempts and the audit.

interface OutboxRow extends TimelineRow {
  published_at: string | null;
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

export async function findTimelines(database: Database, ids: string[]): Promise<EventTimeline[]> {
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
       ${utc("locked_at")} as locked_at, locked_by, stream_seq, payload
     from outbox_events
     where event_id = any($1::uuid[])`,
    [listOf(ids)],
  );
}

// The audit is partitioned by time. Without its outbox row the time of an event is known only from
// its id, which the service makes with its own clock.
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

// A UUID of version 7 begins with its time in milliseconds.
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
      row && publishedStep(row),
      row && claimedStep(row, "IN_FLIGHT"),
    ]),
  };
}

function publishedStep({ status, published_at, stream_seq }: OutboxRow): Step | undefined {
  if (status !== "PUBLISHED" || published_at === null) return undefined;
  return { at: published_at, step: "PUBLISHED", stream_seq };
}
