// Orders and endpoints as rows that the service would write, for tests of what operators see of them.
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { uuidv7 } from "../../shared/process/uuid.ts";
import { ask } from "../../tools/servers/asking.ts";

interface EndpointFields {
  state?: "ACTIVE" | "PAUSED" | "FAILING" | "DISABLED" | "GONE" | "DELETED";
  caller?: string;
  url?: string;
  user_id?: string | null;
  description?: string | null;
  is_draining?: boolean;
}

/** Returns its id. */
export async function insertEndpoint(
  ownerUrl: string,
  fields: EndpointFields = {},
): Promise<string> {
  const { state = "ACTIVE", caller = "shop", url = "https://shop.example/hook?token=t" } = fields;
  const { user_id = null, description = null, is_draining = false } = fields;
  const id = uuidv7();
  await ask(
    ownerUrl,
    `insert into endpoints
       (endpoint_id, caller, url, ordering, at_once, state, user_id, description, is_draining,
        failures, failing_since, next_probe_at, last_reason)
     values ($1, $2, $3, 'key', 4, $4, $5, $6, $7, 5, now(), now() + interval '1 hour', 'TIMEOUT')`,
    [id, caller, url, state, user_id, description, is_draining],
  );
  return id;
}

interface OrderFields {
  endpoint_id?: string | null;
  status?: "PENDING" | "SENDING" | "FAILED" | "SUCCEEDED" | "ABORTED" | "PARKED";
  event_id?: string;
  user_id?: string;
  idempotency_key?: string; // of an order without an endpoint
  reason?: string | null;
  agoSeconds?: number;
}

export const sentText = "what-the-order-sends";

/** Returns its id. */
export async function insertOrder(ownerUrl: string, fields: OrderFields = {}): Promise<string> {
  const { endpoint_id = null, status = "PENDING", reason = null, agoSeconds = 0 } = fields;
  const { event_id = uuidv7(), user_id = "ann", idempotency_key = `shop ${uuidv7()}` } = fields;
  const id = uuidv7();
  const data = {
    ...{ event_id, user_id, source_id: `purchase of ${user_id}`, stock_keeping_unit: "book" },
    ...{ version: 1, trace_id: "t", text: sentText },
  };
  const isEvent = endpoint_id !== null;
  const isOver = status === "SUCCEEDED" || status === "ABORTED";
  await ask(
    ownerUrl,
    `insert into outbox_orders
       (id, idempotency_key, caller, adapter, order_request_json, request_digest, lane, endpoint_id,
        event_id, event_type, user_id, aggregate_key, position, status, attempts, last_error_code,
        last_error_msg, trace_id, created_at, finished_at, claim_token, locked_at, lease_until)
     values ($1, $2, 'shop', $3, $4, 'digest', $5, $6, $7, $8, $9, $10, 1, $11, 2, $12,
       case when $12::text is not null then 'the receiver answered 503' end, 't',
       now() - make_interval(secs => $13), case when $14 then now() end,
       case when $11 = 'SENDING' then gen_random_uuid() end,
       case when $11 = 'SENDING' then now() end,
       case when $11 = 'SENDING' then now() + interval '1 hour' end)`,
    [
      id,
      isEvent ? `${event_id}:${endpoint_id}` : idempotency_key,
      isEvent ? "webhook" : "http",
      JSON.stringify({
        adapter: "http",
        ...isEvent ? { endpoint_id } : { url: "https://pay.example/secret" },
        payload: isEvent ? { type: "EntitlementGranted", timestamp: "t", data } : data,
      }),
      endpoint_id ?? "https://pay.example",
      endpoint_id,
      isEvent ? event_id : null,
      isEvent ? "EntitlementGranted" : null,
      isEvent ? user_id : null,
      isEvent ? `${endpoint_id}:${aggregateKeyOf(user_id, "book")}` : id,
      status,
      reason,
      agoSeconds,
      isOver,
    ],
  );
  return id;
}

interface AttemptFields {
  order_id: string;
  endpoint_id?: string | null;
  outcome?: string;
  body?: string;
}

export async function insertAttempt(
  ownerUrl: string,
  { order_id, endpoint_id = null, outcome = "RETRIED", body = "no room" }: AttemptFields,
): Promise<void> {
  await ask(
    ownerUrl,
    `insert into order_attempts
       (id, outcome, worker, begun_at, error, endpoint_id, reason_code, request_headers, http_status,
        response_headers, response_body)
     values ($1, $2, 'w', now() - interval '20 ms', 'the receiver answered 503', $3, 'SERVER_ERROR',
       '{"webhook-id": "w-1"}', 503, '{"retry-after": "1"}', $4)`,
    [order_id, outcome, endpoint_id, body],
  );
}

/** The entry of an order that has ended. */
export async function insertLedgerEntry(ownerUrl: string, order_id: string): Promise<void> {
  await ask(
    ownerUrl,
    `insert into idempo_ledger
       (idempotency_key, request_digest, status, http_status, reason_code, response_payload_json,
        adapter, attempts, first_sent_at, order_id)
     select idempotency_key, request_digest,
       case status when 'SUCCEEDED' then 'SUCCEEDED' else 'FAILED' end, 502, last_error_code,
       '"no room"', adapter, attempts, created_at, id
     from outbox_orders
     where id = $1`,
    [order_id],
  );
}
