// The parts of the tables of orders, endpoints and the ledger that the invariants compare. An order
// about an event has the names of the change, as a notification has them.
import { ask } from "../../servers/asking.ts";
import { leased } from "./points_tables.ts";

export interface OrderTables {
  endpoints: {
    endpoint_id: string;
    event_types: string[] | null; // null for all
    user_id: string | null; // likewise
    ordering: "none" | "key" | "endpoint";
    state: string;
    is_draining: boolean;
  }[];
  orders: {
    id: string;
    idempotency_key: string;
    request_digest: string;
    url: string;
    send_id: string; // by which a receiver recognizes a repeated send
    endpoint_id: string | null;
    event_id: string | null;
    user_id: string | null;
    stock_keeping_unit: string | null;
    version: number | null;
    status: string;
    reason: string | null; // of its last failure
    failures: number; // attempts other than leases that ran out
    leased: boolean;
  }[];
  ledger: {
    idempotency_key: string;
    request_digest: string;
    status: string;
    order_id: string | null;
    decided_at: number; // in milliseconds since 1970
  }[];
  eventTypes: { event_id: string; type: string; user_id: string }[]; // of all notifications
}

const data = "order_request_json->'payload'->'data'";

export async function readOrderTables(url: string): Promise<OrderTables> {
  const [endpoints, orders, ledger, eventTypes] = await Promise.all([
    ask<OrderTables["endpoints"][0]>(
      url,
      `select endpoint_id, event_types, user_id, ordering, state, is_draining from endpoints`,
    ),
    ask<OrderTables["orders"][0]>(
      url,
      `select id, idempotency_key, request_digest, endpoint_id, event_id,
         coalesce(order_request_json->>'url', endpoint.url) as url,
         coalesce(event_id, id) as send_id, orders.user_id,
         coalesce(${data}->>'stock_keeping_unit', 'points:' || (${data}->>'unit'))
           as stock_keeping_unit,
         (${data}->>'version')::int as version,
         status, last_error_code as reason, ${leased},
         (select count(*)::int
          from order_attempts attempt
          where attempt.id = orders.id
            and attempt.outcome in ('RETRIED', 'GAVE_UP')) as failures
       from outbox_orders orders
       left join endpoints endpoint using (endpoint_id)`,
    ),
    ask<OrderTables["ledger"][0]>(
      url,
      `select idempotency_key, request_digest, status, order_id,
         (extract(epoch from decided_at) * 1000)::float8 as decided_at
       from idempo_ledger`,
    ),
    ask<OrderTables["eventTypes"][0]>(url, "select event_id, type, user_id from notifications"),
  ]);
  return { endpoints, orders, ledger, eventTypes };
}

/** Counts the orders that have not ended, and the endpoints whose orders are parked. */
export const unrestOfOrders = `(select count(*)::int from outbox_orders where unfinished or parked)
  + (select count(*)::int from endpoints where state = 'FAILING' or is_draining) as unsent`;
