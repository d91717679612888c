import type { EventTimeline, Step } from "@kenri/shared/operators/timeline.ts";
import {
  findRowTimelines,
  type RowTimeline,
  stateOf,
  type TimelineRow,
  type TimelineTable,
} from "@kenri/shared/operators/timeline_rows.ts";
import { type Database, utc } from "@kenri/shared/postgres/postgres.ts";
import { eventTypeOf } from "../entitlement.ts";
import { eventTypeOf as ofPoints } from "../points/points.ts";
import { reservations } from "../points/reservations.ts";

// The steps of a reservation, from the request to the commit of what was reserved. After it the event
// of that commit goes on its way.

// The answer to the change of a right leads to its audit row, which has the id of the event.
const eventId = `coalesce(transaction_id, (
         select audit_id
         from entitlement_audit
         where outcome->>'status' = '200'
           and occurred_at = (outcome->'body'->>'updated_at')::timestamptz
           and entitlement_audit.user_id = outcome->'body'->>'user_id'
           and entitlement_audit.stock_keeping_unit = outcome->'body'->>'stock_keeping_unit'))`;

const timelines: TimelineTable = {
  table: reservations,
  columns: `kind, user_id, coalesce(stock_keeping_unit, 'points:' || unit) as stock_keeping_unit,
       trace_id, caller, idempotency_key, ${utc("greatest(execute_at, created_at)")} as due_at,
       outcome, ${eventId} as event_id`,
  foundBy: "id",
  begun: { step: "RESERVED", at: "created_at" },
  done: { statuses: ["DONE", "CANCELLED"], at: "done_at" },
  attemptsHaveSequence: false,
};

interface ReservationRow extends TimelineRow {
  kind: "POINTS" | "GRANT" | "REVOKE";
  user_id: string;
  stock_keeping_unit: string;
  trace_id: string;
  caller: string;
  idempotency_key: string;
  due_at: string;
  outcome: { status: number; body: { code?: string; message?: string } } | null;
  event_id: string | null;
}

export type ReservationTimeline = RowTimeline<ReservationRow>;

/** The reservations with these ids, by id. */
export async function findReservations(
  database: Database,
  ids: string[],
): Promise<Map<string, ReservationTimeline>> {
  if (ids.length === 0) return new Map();
  const found = await findRowTimelines<ReservationRow>(database, timelines, ids);
  return new Map(
    [...found].map(([id, { row, steps }]) => [id, { row, steps: inFull(row, steps) }]),
  );
}

// A cancelled one was never due. A right that could not be changed has the refusal as its result.
function inFull({ status, due_at, outcome }: ReservationRow, steps: Step[]): Step[] {
  const [reserved, ...later] = steps.map((step) =>
    step.step === "DONE" && outcome && outcome.status !== 200
      ? { ...step, error: `${outcome.status} ${outcome.body.code}: ${outcome.body.message}` }
      : step
  );
  const due = status === "CANCELLED" ? [] : [{ at: due_at, step: "DUE" }];
  return [...reserved ? [reserved] : [], ...due, ...later];
}

const eventTypes = { ...eventTypeOf, POINTS: ofPoints.GRANT };

/** A reservation without an event: it is not done yet, was cancelled, or was refused. */
export function withoutEvent({ row, steps }: ReservationTimeline): EventTimeline {
  const { id, kind, user_id, stock_keeping_unit, trace_id, idempotency_key, caller, due_at } = row;
  const state = stateOf(row, "");
  return {
    event_id: null,
    reservation_id: id,
    user_id,
    stock_keeping_unit,
    version: null,
    type: eventTypes[kind],
    trace_id,
    idempotency_key,
    caller,
    ...state,
    next_retry_at: row.status === "PENDING" ? state.next_retry_at ?? due_at : null,
    steps,
  };
}
