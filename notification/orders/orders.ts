import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";
import type { LeasedRow } from "@kenri/shared/queue/leased_row.ts";
import { byDueTime, leasedTable } from "@kenri/shared/queue/leased_table.ts";
import { writesFailure, writesSuccess } from "./ledger.ts";
import type { Reason } from "./reasons.ts";

// The table of orders. The states of its rows and every move between them:
//   (new) → PENDING      accepted, or fanned out from an event
//   (new) → PARKED       the same, while the endpoint is not ACTIVE
//   PENDING → SENDING    claimed; the ledger is read with the claim
//   FAILED → SENDING     claimed when it is due again
//   SENDING → SENDING    claimed again, because the lease ran out
//   SENDING → SUCCEEDED  answered with 2xx, or the ledger says that it was; with the ledger
//   SENDING → FAILED     failed and due for a retry
//   SENDING → PENDING    released, or put off by the receiver
//   SENDING → ABORTED    given up; with the ledger. Most of these are dead letters
//   PENDING, FAILED → PARKED   the endpoint is not ACTIVE any more; also at the end of a lease
//   PARKED → PENDING     the endpoint is ACTIVE again, or this order is its probe
//   PARKED → ABORTED     kept for too long
//   ABORTED → PENDING    sent back by an operator, or replayed; replays also take SUCCEEDED ones

export interface OrderContent {
  caller: string;
  idempotency_key: string;
  adapter: "http" | "webhook";
  request: string; // JSON, as it was accepted
  request_digest: string;
  endpoint_id: string | null;
  event_id: string | null;
  trace_id: string;
  traceparent: string | null;
  operation_id: string | null;
  claimed_at_ms: number; // since 1970, by the clock of the database
  expires_in_ms: number | null; // since the claim
  throttled_ms: number | null; // at the claim
  is_behind_parked: boolean; // an earlier order of its key is parked
  ledger: LedgerEntry | null;
  endpoint: Endpoint | null;
}

interface LedgerEntry {
  status: "SUCCEEDED" | "FAILED";
  request_digest: string;
  reason_code: string | null;
  operation_id: string | null;
}

interface Endpoint {
  url: string;
  state: "ACTIVE" | "PAUSED" | "FAILING" | "DISABLED" | "GONE" | "DELETED";
  at_once: number;
  failures: number;
  is_probe: boolean; // this order is let through although the endpoint is FAILING
  secrets: string[]; // encrypted, as hex
}

export type OrderRow = LeasedRow<OrderContent>;

// What became of one send, or why there was none.
export interface Sent {
  tried: boolean;
  ms?: number;
  reason?: Reason; // none for success
  status?: number;
  requestHeaders?: Record<string, string>;
  responseHeaders?: Record<string, string>;
  body?: string;
}

// What the work needs to know of an order's endpoint, and what the ledger knows of the order, as they
// are when the order is claimed.
const endpoint: Sql = sql`(
      select json_build_object('url', endpoint.url, 'state', endpoint.state,
        'at_once', endpoint.at_once, 'failures', endpoint.failures,
        'is_probe', endpoint.state = 'FAILING'
          and endpoint.probe_order_id is not distinct from claimed.id,
        'secrets', (
          select json_agg(encode(secret.ciphertext, 'hex') order by secret.secret_id desc)
          from endpoint_secrets secret
          where secret.endpoint_id = claimed.endpoint_id
            and (secret.expires_at is null or secret.expires_at > now())))
      from endpoints endpoint
      where endpoint.endpoint_id = claimed.endpoint_id) as endpoint`;

const ledger: Sql = sql`(
      select json_build_object('status', ledger.status, 'request_digest', ledger.request_digest,
        'reason_code', ledger.reason_code, 'operation_id', ledger.operation_id)
      from idempo_ledger ledger
      where ledger.idempotency_key = claimed.idempotency_key) as ledger`;

const isBehindParked: Sql = sql`endpoint_id is not null and exists (
      select from outbox_orders earlier
      where earlier.parked
        and earlier.aggregate_key = claimed.aggregate_key
        and earlier.position < claimed.position) as is_behind_parked`;

// Rows of an endpoint that is not ACTIVE are parked by the statement that would make them wait. The
// endpoint is locked, so that none is parked after its draining has ended (unpark.ts).
const parkedOr = (status: Sql): Sql =>
  sql`case
      when row.endpoint_id is not null and exists (
        select from endpoints endpoint
        where endpoint.endpoint_id = row.endpoint_id
          and endpoint.state <> 'ACTIVE'
        for share) then 'PARKED'
      else ${status} end`;

// Of the sends of one destination, a claim takes no more than these.
const mostOfLane = 256;

export const orders = leasedTable<OrderContent, Sent>({
  name: "outbox_orders",
  id: "id",
  attempts: "order_attempts",
  working: "SENDING",
  columns: { attempts: "attempts", retryAt: "next_run_at", error: "last_error_msg" },
  order: byDueTime("due_at", "position"),
  lane: { of: sql`lane`, most: mostOfLane },
  content: sql`caller, idempotency_key, adapter, order_request_json::text as request,
    request_digest, endpoint_id, event_id, trace_id,
    traceparent, operation_id,
    extract(epoch from locked_at)::float8 * 1000 as claimed_at_ms,
    extract(epoch from expires_at - locked_at)::float8 * 1000 as expires_in_ms,
    extract(epoch from locked_at - throttled_since)::float8 * 1000 as throttled_ms,
    ${isBehindParked},
    ${ledger},
    ${endpoint}`,
  claimSets: sql`updated_at = now(), awaits_predecessor = false`,
  done: {
    status: "SUCCEEDED",
    set: sql`finished_at = now()`,
    returning: decided(),
    also: writesSuccess,
  },
  retried: { status: parkedOr(sql`'FAILED'`) },
  failed: {
    status: sql`'ABORTED'`,
    set: sql`finished_at = now()`,
    returning: decided(),
    also: writesFailure,
  },
  released: { status: parkedOr(sql`'PENDING'`) },
  attempt: {
    columns: {
      endpoint_id: "uuid",
      reason_code: "text",
      request_headers: "json",
      http_status: "bigint",
      response_headers: "json",
      response_body: "text",
      is_json: "boolean",
    },
    of: ({ content }, sent = { tried: true, reason: "INTERNAL_ERROR" }) => ({
      tried: sent.tried,
      values: {
        endpoint_id: content.endpoint_id,
        reason_code: sent.reason ?? null,
        request_headers: sent.requestHeaders ? JSON.stringify(sent.requestHeaders) : null,
        http_status: sent.status ?? null,
        response_headers: sent.responseHeaders ? JSON.stringify(sent.responseHeaders) : null,
        response_body: sent.body ?? null,
        is_json: sent.body === undefined ? null : isJson(sent.body),
      },
    }),
    set: sql`last_error_code = settled.reason_code,
    updated_at = now(),
    first_sent_at = case when settled.tried then coalesce(row.first_sent_at, row.locked_at)
      else row.first_sent_at end,
    throttled_since = case when settled.reason_code = 'THROTTLED'
      then coalesce(row.throttled_since, now()) end`,
    succeeded: sql`'SUCCEEDED'`,
    putOff: sql`case changed.reason_code when 'THROTTLED' then 'PUT_OFF' else 'PROBED' end`,
  },
});

function decided(): Sql {
  return sql`row.idempotency_key, row.request_digest, row.adapter, row.attempts, row.first_sent_at,
    row.operation_id`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
