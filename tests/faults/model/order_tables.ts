// The tables of orders in the model, as PostgreSQL has them.
import { query } from "../../../shared/postgres/postgres.ts";
import { freshDatabase } from "../../support/databases.ts";
import {
  asRecords,
  byEvent,
  eventOf,
  idOf,
  leasedColumns,
  leasedValues,
  rowOfModel,
  type StoredRow,
  tokenOf,
} from "./leased_rows.ts";
import type { TableAccess } from "./real_calls.ts";
import { type EndpointRow, type Event, events, type OrderRow, type Orders } from "./state.ts";

export const endpointId = "00000000-0000-4000-9000-0000000000ee";

export const keyOf = (event: Event): string => `${idOf(event)}:${endpointId}`;

const inOrders = (text: string): string =>
  text.replace("attempt_count as attempts", "attempts").replace("attempt_count", "attempts")
    .replace("next_retry_at", "next_run_at");

export const access: TableAccess<Orders> = {
  freshDatabase: () => freshDatabase("notification"),
  names: [
    ...["processed_events", "notifications", "outbox_orders", "order_attempts", "idempo_ledger"],
    ...["endpoint_secrets", "endpoints"],
  ],
  tokenOf,
  load: ({ rows, processed, ledger, endpoints: [endpoint] }) => {
    const received = processed.flatMap((seen, event) => seen ? [event] : []);
    const known = ledger.flatMap((status, event) =>
      status ? [{ status, key: keyOf(event), id: idOf(event) }] : []
    );
    return `insert into processed_events (event_id)
     select id from unnest('{${received.map(idOf)}}'::uuid[]) as id;
     insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        status, sent_at)
     select id, id, 'user', key, version, 'EntitlementGranted', now(), '{}', 'SENT', now()
     from json_to_recordset('${
      JSON.stringify(received.map((event) => ({ ...events[event], id: idOf(event) })))
    }') as row (id uuid, key text, version bigint);
     ${endpoint ? loadEndpoint(endpoint) : ""};
     insert into outbox_orders
       (id, idempotency_key, caller, adapter, order_request_json, request_digest, lane, endpoint_id,
        event_id, event_type, user_id, aggregate_key, position, trace_id, created_at, updated_at, finished_at,
        awaits_predecessor, ${inOrders(leasedColumns)})
     select id, id || ':${endpointId}', 'model', 'webhook', '{"payload":{}}', 'd', '${endpointId}',
       '${endpointId}', id, 'EntitlementGranted', 'user', '${endpointId}:' || key, version, 't',
       born, now() - interval '1 hour', case when status in ('SUCCEEDED', 'FAILED') then now() end, "awaitsPredecessor",
       case status when 'FAILED' then 'ABORTED' when 'RETRYING' then 'FAILED' else status end,
       ${leasedValues.slice(leasedValues.indexOf("attempts"))}
     from ${asRecords(rows, '"awaitsPredecessor" boolean')};
     insert into idempo_ledger (idempotency_key, request_digest, status, adapter, order_id)
     select key, 'd', status, 'webhook', id
     from json_to_recordset('${JSON.stringify(known)}') as row (key text, status text, id uuid)`;
  },
  lock: (event) => `select from outbox_orders where event_id = '${idOf(event)}' for update`,
  async read(owner) {
    const found = await query<StoredRow<OrderRow>>(
      owner,
      `select event_id, ${inOrders(rowOfModel).replace("status,", statusOfModel)},
         awaits_predecessor as "awaitsPredecessor"
       from outbox_orders`,
    );
    const ledger = await query<{ idempotency_key: string; status: string }>(
      owner,
      "select idempotency_key, status from idempo_ledger",
    );
    const processed = await query<{ event_id: string }>(
      owner,
      "select event_id from processed_events",
    );
    const endpoints = await query<EndpointRow & { probe_id: string | null }>(
      owner,
      `select state, is_draining as draining, failures,
         coalesce(next_probe_at > now(), false) as "probeWaits",
         probe_order_id as probe_id
       from endpoints`,
    );
    const { rows, tokens } = byEvent<OrderRow>(found);
    return {
      tokens,
      tables: {
        // Only where a claim reads it.
        rows: rows.map((row) => row && { ...row, waits: row.waits && isWaiting(row) }),
        processed: events.map((_, event) =>
          processed.some(({ event_id }) => event_id === idOf(event))
        ),
        ledger: events.map((_, event) =>
          ledger.find(({ idempotency_key }) => idempotency_key === keyOf(event))?.status ?? null
        ),
        endpoints: endpoints.map(({ probe_id, ...endpoint }) => ({
          ...endpoint,
          probe: probe_id === null ? null : eventOf(probe_id),
        })),
      },
    };
  },
};

const isWaiting = ({ status, awaitsPredecessor }: OrderRow) =>
  status === "PENDING" || status === "RETRYING" || (status === "PARKED" && awaitsPredecessor);

// FAILED is the end of a row in all tables but this one.
const statusOfModel =
  "case status when 'ABORTED' then 'FAILED' when 'FAILED' then 'RETRYING' else status end as status,";

function loadEndpoint({ state, draining, failures, probe, probeWaits }: EndpointRow): string {
  const isFailing = state === "FAILING";
  return `insert into endpoints
     (endpoint_id, caller, url, ordering, at_once, state, is_draining, failures, failing_since,
      next_probe_at, probe_order_id)
   values ('${endpointId}', 'model', 'https://receiver', 'key', 4, '${state}', ${draining},
     ${failures}, ${isFailing ? "now()" : "null"},
     ${isFailing ? `now() ${probeWaits ? "+" : "-"} interval '1 hour'` : "null"},
     ${probe === null ? "null" : `'${idOf(probe)}'`})`;
}
