import type { EventTimeline, Step } from "@kenri/shared/operators/timeline.ts";
import {
  findRowTimelines,
  type RowTimeline,
  stateOf,
  type TimelineRow,
  type TimelineTable,
} from "@kenri/shared/operators/timeline_rows.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { listOf } from "@kenri/shared/postgres/sql.ts";
import { orders } from "../../orders/orders.ts";
import { destination } from "./orders.ts";

// The steps of orders: of one, or of all that an event led to.

const timelines: TimelineTable = {
  table: orders,
  columns: `${destination} as to, event_id, event_type, user_id, caller, idempotency_key, trace_id,
       last_error_msg`,
  foundBy: "id",
  begun: { step: "ORDERED", at: "created_at" },
  done: { statuses: ["SUCCEEDED", "ABORTED"], at: "finished_at" },
  attemptsHaveSequence: false,
};

interface OrderRow extends TimelineRow {
  to: string;
  event_id: string | null;
  event_type: string | null;
  user_id: string | null;
  caller: string;
  idempotency_key: string;
  trace_id: string;
  last_error_msg: string | null;
}

type OrderTimeline = RowTimeline<OrderRow>;

async function findOrders(database: Database, ids: string[]): Promise<OrderTimeline[]> {
  if (ids.length === 0) return [];
  const found = await findRowTimelines<OrderRow>(database, timelines, ids);
  return ids.flatMap((id) => found.get(id) ?? []).map(({ row, steps }) => ({
    row,
    steps: inFull(row, steps),
  }));
}

// Its last attempt has the same end as the order, unless there was none: because the ledger knew the
// order, or because it was given up without a send.
function inFull({ status, last_error_msg }: OrderRow, steps: Step[]): Step[] {
  const [before, last] = steps.slice(-2);
  if (last?.step !== status) return steps;
  if (before?.step === "SUCCEEDED" || before?.step === "GAVE_UP") return steps.slice(0, -1);
  return status === "ABORTED" ? [...steps.slice(0, -1), { ...last, error: last_error_msg }] : steps;
}

/** The timelines of these orders. */
export async function findOrderTimelines(
  database: Database,
  ids: string[],
): Promise<EventTimeline[]> {
  return (await findOrders(database, ids)).map(({ row, steps }) => ({
    event_id: row.event_id,
    order_id: row.id,
    user_id: row.user_id,
    stock_keeping_unit: null,
    version: null,
    type: row.event_type,
    trace_id: row.trace_id,
    // The key of an order of an event was not chosen by anybody.
    ...row.event_id === null ? { idempotency_key: keyOf(row) } : {},
    caller: row.caller,
    ...stateOf(row, ""),
    steps: steps.map((step, i) => i === 0 ? { ...step, to: row.to } : step),
  }));
}

function keyOf({ idempotency_key, caller }: OrderRow): string {
  return caller === "" ? idempotency_key : idempotency_key.slice(caller.length + 1);
}

/** The steps of the orders of these events, by event. */
export async function findOrderSteps(
  database: Database,
  events: string[],
): Promise<Map<string, Step[]>> {
  const ids = await findOrdersOfEvents(database, events);
  const found = await findOrders(database, ids);
  const ofEvent = Map.groupBy(found, ({ row }) => row.event_id ?? "");
  return new Map(
    [...ofEvent].map(([event, its]) => [
      event,
      its.flatMap(({ row: { id, to }, steps }) =>
        steps.map((step) => ({ ...step, order_id: id, to }))
      ),
    ]),
  );
}

const ordersAtMost = 500; // of all events of a timeline

// The key of an order of an event begins with the event.
async function findOrdersOfEvents(database: Database, events: string[]): Promise<string[]> {
  const rows = await query<{ id: string }>(
    database,
    `select found.id
     from unnest($1::uuid[]) with ordinality as wanted (event_id, nth)
     cross join lateral (
       select id
       from outbox_orders
       where idempotency_key >= wanted.event_id || ':'
         and idempotency_key < wanted.event_id || ';'
       order by idempotency_key
       limit $2
     ) as found
     order by nth
     limit $2`,
    [listOf(events), ordersAtMost],
  );
  return rows.map(({ id }) => id);
}

/** The order under a key: the key alone, or with a named caller the name, a space, and the key. */
export async function findOrderUnder(database: Database, key: string): Promise<string[]> {
  const rows = await query<{ id: string }>(
    database,
    "select id from outbox_orders where idempotency_key = $1",
    [key],
  );
  return rows.map(({ id }) => id);
}
