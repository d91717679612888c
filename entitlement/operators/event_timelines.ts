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
import { eventTypeOf as ofPoints } from "../points/points.ts";
import { outbox } from "../outbox.ts";
import {
  findReservations,
  type ReservationTimeline,
  withoutEvent,
} from "./reservation_timelines.ts";

// The steps of an event in this service, from the reservation, if the change was reserved, to the
// stream: by its outbox row, its attempts and the audit.

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
  stock_keeping_unit: string;
  action: keyof typeof typeOf;
  request_id: string;
  caller: string | null;
  version: number;
  trace_id: string;
}

const typeOf = { ...eventTypeOf, POINTS_ADD: ofPoints.GRANT, POINTS_TAKE: ofPoints.SPEND };

/** The reservations that have no event come first. The others are part of the timeline of their event. */
export async function findTimelines(
  database: Database,
  eventIds: string[],
  reservationIds: string[] = [],
): Promise<EventTimeline[]> {
  const reserved = await findReservations(database, reservationIds);
  const eventsOfReserved = [...reserved.values()].flatMap(({ row }) => row.event_id ?? []);
  const ids = [...new Set([...eventIds, ...eventsOfReserved])];
  const rows = await findRowTimelines<OutboxRow>(database, events, ids);
  const changes = await findChanges(database, ids, rows);
  const changeOf = new Map(changes.map((change) => [change.event_id, change]));
  const more = changes.flatMap((change) => reservationIn(change) ?? []);
  const known = await findReservations(database, more.filter((id) => !reserved.has(id)));
  const reservationOf = (change: AuditRow | undefined) => {
    const id = change && reservationIn(change);
    return id === undefined ? undefined : reserved.get(id) ?? known.get(id);
  };
  const found = ids.filter((id) => rows.has(id) || changeOf.has(id));
  return [
    ...[...reserved.values()].filter(({ row }) => !found.includes(row.event_id ?? ""))
      .map(withoutEvent),
    ...found.map((id) => {
      const change = changeOf.get(id);
      return toTimeline(id, rows.get(id), change, reservationOf(change));
    }),
  ];
}

// What is due is changed under this key.
function reservationIn({ request_id }: AuditRow): string | undefined {
  return request_id.match(/^reservation:([0-9a-f-]{36})$/)?.[1];
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
  reserved: ReservationTimeline | undefined,
): EventTimeline {
  const payload = found?.row.payload ?? {};
  const textOf = (name: string) => typeof payload[name] === "string" ? `${payload[name]}` : null;
  const steps = found?.steps ?? [{ at: change?.occurred_at ?? "", step: events.begun.step }];
  return {
    event_id,
    reservation_id: reserved?.row.id ?? null,
    user_id: change?.user_id ?? textOf("user_id"),
    stock_keeping_unit: change?.stock_keeping_unit ?? textOf("stock_keeping_unit"),
    version: change?.version ?? (Number(payload["version"]) || null),
    type: found?.row.type ?? (change ? typeOf[change.action] : null),
    trace_id: change?.trace_id ?? textOf("trace_id"),
    idempotency_key: reserved?.row.idempotency_key ?? change?.request_id ?? null,
    caller: change?.caller ?? null,
    ...stateOf(found?.row, "DELETED"),
    steps: inOrder([...reserved?.steps ?? [], ...steps]),
  };
}
