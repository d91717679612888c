import type { Erasure } from "@kenri/shared/operators/erasure.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";

// A match names its users to each other. A user who is erased is also erased from what their peers
// received about their matches. A peer who was erased earlier has the same pseudonym in all rows.

interface Match extends Record<string, unknown> {
  match_id: string;
  peer: string;
}

export function findMatches(tx: Transaction, userId: string): Promise<Match[]> {
  return query<Match>(
    tx,
    sql`
    select distinct payload->>'match_id' as match_id, peer
    from (
      select payload_json as payload from notifications where user_id = ${userId}
      union all
      select payload_json from notification_dlq where payload_json->>'user_id' = ${userId}
    ) as own, jsonb_array_elements_text(payload->'peer_user_ids') as peer`,
  );
}

// Locks the orders, so that no worker claims one of them until the transaction ends. Returns how many
// notifications and orders that name the user are being sent, or wait to be.
export async function countUnsentToPeers(
  tx: Transaction,
  userId: string,
  matches: Match[],
): Promise<number> {
  if (matches.length === 0) return 0;
  const orders = await query<{ status: string }>(
    tx,
    sql`
    select status from outbox_orders where ${
      isOrderOfPeer(userId, matches)
    } order by id for update`,
  );
  const notifications = await query(
    tx,
    sql`
    select from notifications where ${isOfPeer(userId, matches)} and unfinished`,
  );
  return notifications.length + orders.filter(({ status }) => status === "SENDING").length;
}

export async function eraseFromPeers(
  tx: Transaction,
  { userId, pseudonym }: Erasure,
  matches: Match[],
): Promise<void> {
  if (matches.length === 0) return;
  const payload = withoutPeer(sql`payload_json`, userId, pseudonym);
  await query(
    tx,
    sql`
    update notifications set payload_json = ${payload} where ${isOfPeer(userId, matches)}`,
  );
  await query(
    tx,
    sql`
    update notification_dlq
    set payload_json = ${payload}
    where payload_json->'peer_user_ids' ? ${userId}`,
  );
  // The digests and the answers go for the same reasons as those of the user's own orders.
  await query(
    tx,
    sql`
    with erased as (
      update outbox_orders
      set request_digest = 'erased',
        order_request_json = jsonb_set(order_request_json::jsonb, '{payload,data}',
          ${withoutPeer(data, userId, pseudonym)})
      where ${isOrderOfPeer(userId, matches)}
      returning id, idempotency_key
    ), attempts as (
      update order_attempts attempt
      set response_headers = null, response_body = null
      from erased
      where attempt.id = erased.id
    )
    update idempo_ledger ledger
    set response_payload_json = null, request_digest = 'erased'
    from erased
    where ledger.idempotency_key = erased.idempotency_key`,
  );
}

const data = sql`(order_request_json->'payload'->'data')::jsonb`;

function isOfPeer(userId: string, matches: Match[], payload = sql`payload_json`): Sql {
  return sql`user_id = any(${matches.map(({ peer }) => peer)}::text[])
      and ${payload}->>'match_id' = any(${matches.map(({ match_id }) => match_id)}::text[])
      and ${payload}->'peer_user_ids' ? ${userId}`;
}

const isOrderOfPeer = (userId: string, matches: Match[]) => isOfPeer(userId, matches, data);

function withoutPeer(payload: Sql, userId: string, pseudonym: string): Sql {
  return sql`jsonb_set(${payload}, '{peer_user_ids}', (
        select jsonb_agg(case when peer = ${userId} then ${pseudonym}::text else peer end
          order by place)
        from jsonb_array_elements_text(${payload}->'peer_user_ids')
          with ordinality as peers (peer, place)))`;
}
