import { keyPrefixOf } from "@kenri/proto/entitlement/aggregate_key.ts";
import { matchmakingKeyPrefixOf } from "@kenri/proto/matchmaking/aggregate_key.ts";
import { pointsKeyPrefixOf } from "@kenri/proto/points/aggregate_key.ts";
import type { ErasedRows, Erasure } from "@kenri/shared/operators/erasure.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { keyOf } from "../../key_of.ts";
import { erasedPayload } from "../erased_payload.ts";

// Erases a user from orders, from what was sent and answered for them, and from endpoints that are
// for this user alone. Orders that were not sent yet are withdrawn, because a failing receiver may
// hold them up for weeks.

// No worker can claim one of the user's orders until the transaction ends. Endpoints are locked before
// orders, as wherever orders are parked. Returns how many are being sent.
export async function lockOrders(tx: Transaction, userId: string): Promise<number> {
  await query(
    tx,
    sql`
    select
    from endpoints
    where user_id = ${userId}
    order by endpoint_id
    for update`,
  );
  const rows = await query<{ status: string }>(
    tx,
    sql`
    select status
    from outbox_orders
    where user_id = ${userId}
    order by id
    for update`,
  );
  return rows.filter(({ status }) => status === "SENDING").length;
}

export async function countOrders(tx: Transaction, userId: string): Promise<ErasedRows> {
  const [counted] = await query<{ orders: number; endpoints: number }>(
    tx,
    sql`
    select
      (select count(*) from outbox_orders where user_id = ${userId}) as orders,
      (select count(*) from endpoints where user_id = ${userId}) as endpoints`,
  );
  return { outbox_orders: counted?.orders ?? 0, endpoints: counted?.endpoints ?? 0 };
}

export async function eraseOrders(tx: Transaction, erasure: Erasure): Promise<void> {
  await withdraw(tx, erasure.userId);
  await eraseAnswers(tx, erasure.userId);
  await erasePayloads(tx, erasure);
  await eraseEndpoints(tx, erasure);
}

async function withdraw(tx: Transaction, userId: string): Promise<void> {
  await query(
    tx,
    sql`
    with withdrawn as (
      update outbox_orders
      set status = 'ABORTED', last_error_code = 'USER_ERASED', last_error_msg = 'the user was erased',
        next_run_at = null, awaits_predecessor = false, finished_at = now(), updated_at = now()
      where user_id = ${userId}
        and (unfinished or parked)
      returning *
    )
    insert into idempo_ledger as known
      (idempotency_key, request_digest, status, http_status, reason_code, adapter, attempts,
       first_sent_at, order_id, operation_id)
    select idempotency_key, request_digest, 'FAILED', 410, 'USER_ERASED', adapter, attempts,
      first_sent_at, id, operation_id
    from withdrawn
    on conflict (idempotency_key) do update
    set http_status = 410, reason_code = 'USER_ERASED', decided_at = now(),
      operation_id = excluded.operation_id
    where known.status = 'FAILED'`,
  );
}

// A receiver may have answered with what it got. The digests go as well, because somebody who guesses
// the user could compute them again. They stay the same in both tables, so an order that is sent back
// is no conflict.
async function eraseAnswers(tx: Transaction, userId: string): Promise<void> {
  await query(
    tx,
    sql`
    with attempts as (
      update order_attempts attempt
      set response_headers = null, response_body = null
      from outbox_orders
      where outbox_orders.user_id = ${userId}
        and attempt.id = outbox_orders.id
    )
    update idempo_ledger ledger
    set response_payload_json = null, request_digest = 'erased'
    from outbox_orders
    where outbox_orders.user_id = ${userId}
      and ledger.idempotency_key = outbox_orders.idempotency_key`,
  );
}

// The payload of an order is an event in the form of a webhook. Only a key that begins with that of
// the event names the user.
const data = sql`(order_request_json->'payload'->'data')::jsonb`;

async function erasePayloads(tx: Transaction, { userId, pseudonym }: Erasure): Promise<void> {
  await query(
    tx,
    sql`
    update outbox_orders
    set user_id = ${pseudonym},
      request_digest = 'erased',
      order_request_json = jsonb_set(order_request_json::jsonb, '{payload,data}',
        ${erasedPayload(data, pseudonym)}),
      aggregate_key = case
        when starts_with(aggregate_key, endpoint_id || ':' || ${keyPrefixOf(userId)})
          or starts_with(aggregate_key, endpoint_id || ':' || ${pointsKeyPrefixOf(userId)})
          or starts_with(aggregate_key, endpoint_id || ':' || ${matchmakingKeyPrefixOf(userId)})
        then endpoint_id || ':' || ${keyOf(data, sql`${pseudonym}`)}
        else aggregate_key end
    where user_id = ${userId}`,
  );
}

// No event is for this endpoint any more. Its owner may delete it.
async function eraseEndpoints(tx: Transaction, { userId, pseudonym }: Erasure): Promise<void> {
  await query(
    tx,
    sql`
    with stored as (
      update idempotency_keys
      set request_hash = 'erased',
        response_body = (response_body::jsonb || jsonb_build_object(
          'user_id', ${pseudonym}::text, 'description', null))::text
      where case when response_body like '{%' then response_body::jsonb->>'user_id' end = ${userId}
    )
    update endpoints
    set user_id = ${pseudonym}, description = null
    where user_id = ${userId}`,
  );
}
