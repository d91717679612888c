import { list, literal, Sql, sql } from "@kenri/shared/postgres/sql.ts";
import { reasons } from "./reasons.ts";

// The ledger: how each order ended. It is written by the statement that ends the order, so neither
// exists without the other. These are the parts of that statement; `changed` has the orders.

const columns = sql`idempotency_key, request_digest, status, http_status, reason_code,
    response_payload_json, adapter, attempts, first_sent_at, decided_at, order_id, operation_id`;

const response = sql`case when is_json then response_body::json else to_json(response_body) end`;

// The status that the ledger keeps for a failure; a refusal keeps the one that came.
const statusOfReason = sql`case reason_code ${
  list(
    Object.entries(reasons).flatMap(([reason, { ledgerStatus }]) =>
      ledgerStatus === undefined ? [] : [sql`when ${literal(reason)} then ${number(ledgerStatus)}`]
    ),
    " ",
  )
} else http_status end`;

function number(status: number): Sql {
  return new Sql([`${Math.trunc(status)}`], []);
}

const newer = sql`status = excluded.status,
    http_status = excluded.http_status,
    reason_code = excluded.reason_code,
    response_payload_json = excluded.response_payload_json,
    attempts = excluded.attempts,
    first_sent_at = coalesce(known.first_sent_at, excluded.first_sent_at),
    decided_at = excluded.decided_at,
    order_id = excluded.order_id,
    operation_id = excluded.operation_id`;

// An order that was not sent, because the ledger knew it, leaves the ledger as it is.
export const writesSuccess: Sql = sql`ledger as (
  insert into idempo_ledger as known (${columns})
  select idempotency_key, request_digest, 'SUCCEEDED', http_status, null,
    ${response}, adapter, attempts, first_sent_at, now(), id, operation_id
  from changed
  where tried
  on conflict (idempotency_key) do update set ${newer}
  where known.request_digest = excluded.request_digest
)`;

// A conflict is about the order of somebody else. What has once succeeded stays on record.
export const writesFailure: Sql = sql`ledger as (
  insert into idempo_ledger as known (${columns})
  select idempotency_key, request_digest, 'FAILED', ${statusOfReason}, reason_code,
    ${response}, adapter, attempts, first_sent_at, now(), id, operation_id
  from changed
  where reason_code <> 'IDEMPOTENCY_CONFLICT'
  on conflict (idempotency_key) do update set ${newer}
  where known.request_digest = excluded.request_digest
    and known.status = 'FAILED'
    and known.operation_id is distinct from excluded.operation_id
)`;
