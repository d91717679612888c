import { type EventTimeline, inOrder } from "@kenri/shared/operators/timeline.ts";
import {
  findRowTimelines,
  type RowTimeline,
  stateOf,
  type TimelineRow,
  type TimelineTable,
} from "@kenri/shared/operators/timeline_rows.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { listOf } from "@kenri/shared/postgres/sql.ts";
import { eventTypeOf } from "../entitlement.ts";
import { outbox } from "../outbox.ts";

// The steps of an event in this service, from the change to the stream: by its outbox row, its
// attempts and the audit.

const events: TimelineTable = {
  table: outbox,
  columns: "event_type as type, stream_seq, payload",
  begun: { step: "CHANGED", at: "created_at" },
  done: { status: "PUBLISHED", at: "published_at" },
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
  stock_keeping_unit: string;
  action: "GRANT" | "REVOKE";
  request_id: string;
  caller: string | null;
  version: number;
  trace_id: string;
}

export async function findTimelines(database: Database, ids: string[]): Promise<EventTimeline[]> {
  if (ids.length === 0) return [];
  const rows = await findRowTimelines<OutboxRow>(database, events, ids);
  const changes = await findChanges(database, ids, rows);
  const changeOf = new Map(changes.map((change) => [change.event_id, change]));
  return ids.filter((id) => rows.has(id) || changeOf.has(id)).map((id) =>
    toTimeline(id, rows.get(id), changeOf.get(id))
  );
}

// The audit is partitioned by time. Without its outbox row the time of an event is known only from
// its id, which the service makes with its own clock.
const clocksDifferMs = 5_000;

function findChanges(
  database: Database,
  ids: string[],
  rows: Map<string, RowTimeline<OutboxRow>>,
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
      ids.map((id) => rows.get(id)?.row.begun_at ?? null),
      listOf(ids.map((id) => (timeOf(id) - clocksDifferMs) / 1_000)),
      listOf(ids.map((id) => (timeOf(id) + clocksDifferMs) / 1_000)),
    ],
  );
}

// A UUID of version 7 begins with its time in milliseconds.
function timeOf(id: string): number {
  return parseInt(id.replaceAll("-", "").slice(0, 12), 16);
}

// Without its outbox row the change is known from the audit alone.
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
    stock_keeping_unit: change?.stock_keeping_unit ?? textOf("stock_keeping_unit"),
    version: change?.version ?? (Number(payload["version"]) || null),
    type: found?.row.type ?? (change ? eventTypeOf[change.action] : null),
    trace_id: change?.trace_id ?? textOf("trace_id"),
    idempotency_key: change?.request_id ?? null,
    caller: change?.caller ?? null,
    ...stateOf(found?.row, "DELETED"),
    steps: inOrder(found?.steps ?? [{ at: change?.occurred_at ?? "", step: events.begun.step }]),
  };
}
