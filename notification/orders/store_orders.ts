import { storedKeyOf } from "@kenri/shared/commands/stored_answers.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import type { Order } from "./accept_order.ts";
import type { OrderRow } from "./orders.ts";

// What the database contains for an order.
export interface Situation {
  id: string; // for the order
  known: { id: string; digest: string } | null; // the order that has its key
  endpoint: OrderEndpoint | null; // of this caller
}

interface OrderEndpoint {
  ordering: "none" | "key" | "endpoint";
  parks: boolean;
}

// An order to write.
export interface Accepted {
  kind: "order";
  id: string;
  order: Order;
  endpoint: OrderEndpoint | null;
}

// Endpoints that park their orders are locked, so that none is parked after the last one was let go.
export async function findSituations(tx: Transaction, given: Order[]): Promise<Situation[]> {
  const found = await query<Omit<Situation, "id">>(
    tx,
    sql`
    with wanted as (
      select *
      from unnest(
        ${given.map(storedKeyOf)}::text[],
        ${given.map(({ caller }) => caller)}::text[],
        ${given.map(({ endpointId }) => endpointId)}::uuid[]
      ) with ordinality as wanted (key, caller, endpoint_id, place)
    ), parking as (
      select endpoint_id
      from endpoints
      where endpoint_id in (select endpoint_id from wanted)
        and (state <> 'ACTIVE' or is_draining)
      order by endpoint_id
      for share
    )
    select
      case when coalesce(known.id, ledger.order_id) is not null then json_build_object(
        'id', coalesce(known.id, ledger.order_id),
        'digest', coalesce(known.request_digest, ledger.request_digest)) end as known,
      case when endpoint.endpoint_id is not null then json_build_object(
        'ordering', endpoint.ordering,
        'parks', endpoint.endpoint_id in (select endpoint_id from parking)) end as endpoint
    from wanted
    left join outbox_orders known on known.idempotency_key = wanted.key
    left join idempo_ledger ledger on ledger.idempotency_key = wanted.key
    left join endpoints endpoint
      on endpoint.endpoint_id = wanted.endpoint_id
      and endpoint.caller = wanted.caller
      and endpoint.state <> 'DELETED'
    order by wanted.place`,
  );
  return found.map((row) => ({ ...row, id: uuidv7() }));
}

export async function storeOrders(
  tx: Transaction,
  effects: Accepted[],
): Promise<OrderRow[] | undefined> {
  const rows = effects.map(({ id, order, endpoint }) => ({
    id,
    idempotency_key: storedKeyOf(order),
    caller: order.caller,
    adapter: order.endpointId === null ? "http" : "webhook",
    request: order.request,
    request_digest: order.digest,
    lane: order.endpointId ?? new URL(order.url ?? "").origin,
    endpoint_id: order.endpointId,
    aggregate_key: keyOf(id, order, endpoint),
    status: endpoint?.parks ? "PARKED" : "PENDING",
    trace_id: order.traceId,
    traceparent: order.traceparent,
    expires_at: order.expiresAt,
  }));
  await query(
    tx,
    sql`
    insert into outbox_orders
      (id, idempotency_key, caller, adapter, order_request_json, request_digest, lane, endpoint_id,
       aggregate_key, position, status, next_run_at, trace_id, traceparent, expires_at)
    select id, idempotency_key, caller, adapter, request::json, request_digest, lane, endpoint_id,
      aggregate_key, extract(epoch from clock_timestamp()) * 1000000, status, now(), trace_id,
      traceparent, expires_at
    from json_to_recordset(${JSON.stringify(rows)}) as accepted (
      id uuid, idempotency_key text, caller text, adapter text, request text, request_digest text,
      lane text, endpoint_id uuid, aggregate_key text, status text, trace_id text,
      traceparent text, expires_at timestamptz)`,
  );
  return rows.some(({ status }) => status === "PENDING") ? [] : undefined;
}

// Only an endpoint in strict order has orders that wait for each other, because no order of a caller
// is about the same thing as another one.
function keyOf(id: string, { endpointId }: Order, endpoint: OrderEndpoint | null): string {
  if (endpointId === null) return id;
  return endpoint?.ordering === "endpoint" ? endpointId : `${endpointId}:${id}`;
}
