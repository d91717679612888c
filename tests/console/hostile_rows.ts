// Rows with hostile texts, and the pages that show those of points and of orders.
import { ask, type Entitlement } from "../support/entitlement.ts";
import type { Stack } from "../support/stack.ts";
import { grantPoints, inMs, reserve } from "../support/points.ts";

/** Writes what a channel, a broker or another release could have written. */
export async function spoilTables({ entitlement, place }: Stack, hostile: string[]): Promise<void> {
  const { database } = entitlement;
  for (const [i, text] of hostile.entries()) {
    await ask(
      place.ownerUrl,
      `with numbered as (
         select notification_id, row_number() over (order by dlq_id) as number
         from notification_dlq)
       update notification_dlq dead set error_message = $1
       from numbered
       where numbered.notification_id = dead.notification_id and number = $2`,
      [`${text}\u0001\u001b[2J`, i + 1],
    );
    await ask(
      database.ownerUrl,
      `insert into outbox_events
         (event_id, event_type, aggregate_key, payload, status, last_error, locked_by)
       values (gen_random_uuid(), $1, $1, jsonb_build_object($1::text, $1), 'FAILED', $1, $1)`,
      [text],
    );
    await ask(
      database.ownerUrl,
      `insert into outbox_events
         (event_id, event_type, aggregate_key, payload, next_retry_at, last_error)
       values (gen_random_uuid(), $1, $1, '{}', now() + interval '1 h', $1)`,
      [text],
    );
    await storeHostilePoints(entitlement, text);
    await storeHostileOrders(place.ownerUrl, i, text);
    await ask(
      database.ownerUrl,
      `insert into unreceived_events
         (event_id, occurred_at, user_id, stock_keeping_unit, version, state)
       values (gen_random_uuid(), now(), $1, $1, 1, 'MISSING')`,
      [text],
    );
  }
}

async function storeHostilePoints(
  { url, database: { ownerUrl } }: Entitlement,
  text: string,
): Promise<void> {
  const fields = { user_id: text, reason: text, source_id: text };
  await grantPoints(url, fields);
  await reserve(url, { ...fields, execute_at: inMs(3_600_000) });
  // One is late, one waits for another attempt, and one failed for good.
  await ask(
    ownerUrl,
    `insert into point_reservations
       (id, kind, caller, idempotency_key, user_id, stock_keeping_unit, source, source_id,
        execute_at, next_retry_at, trace_id, aggregate_key, position, status, attempt_count,
        last_error, locked_by, lease_until, created_at, updated_at)
     select id, 'GRANT', $1, id, $1, $1, $1, $1, now(), next, $1, $1, id, state, 3, $1, $1,
       now() + interval '1 day', now(), now()
     from (select gen_random_uuid() as id, state, next
           from (values ('PROCESSING', null), ('PENDING', now() + interval '1 h'), ('FAILED', null))
             as given (state, next)) as rows`,
    [text],
  );
}

/** What callers choose and receivers answer. One order is late, one is parked, and one failed for good. */
async function storeHostileOrders(ownerUrl: string, i: number, text: string): Promise<void> {
  const endpoint = endpointOf(i);
  await ask(
    ownerUrl,
    `insert into endpoints
       (endpoint_id, caller, url, event_types, user_id, ordering, at_once, description, state,
        is_draining, last_reason)
     values ($1, $2, 'https://' || $2, array[$2], $2, 'key', 1, $2, 'DISABLED', true, $2)`,
    [endpoint, text],
  );
  await ask(
    ownerUrl,
    `with made as (
       insert into outbox_orders
         (id, idempotency_key, caller, adapter, order_request_json, request_digest, lane,
          endpoint_id, event_id, event_type, user_id, aggregate_key, position, status,
          last_error_code, last_error_msg, locked_by, trace_id, finished_at, next_run_at)
       select id, $2 || ' ' || id || $2, $2, 'webhook', '{}', $2, $2, $1, gen_random_uuid(), $2,
         $2, $2, 1, state, $2, $2, $2, $2, now(),
         case when state = 'PARKED' then null else now() - interval '1 h' end
       from (select gen_random_uuid() as id, state
             from (values ('PARKED'), ('FAILED'), ('ABORTED')) as given (state)) as given
       returning id, idempotency_key
     ), tried as (
       insert into order_attempts
         (id, outcome, worker, begun_at, error, endpoint_id, reason_code, request_headers,
          http_status, response_headers, response_body)
       select id, 'RETRIED', $2, now(), $2, $1, $2, json_build_object($2::text, $2::text), 500,
         json_build_object($2::text, $2::text), $2
       from made
     )
     insert into idempo_ledger
       (idempotency_key, request_digest, status, reason_code, response_payload_json, order_id)
     select idempotency_key, $2, 'FAILED', $2, to_json($2::text), id
     from made`,
    [endpoint, text],
  );
}

const endpointOf = (i: number) => `00000000-0000-7000-8000-${`${i}`.padStart(12, "0")}`;

export function pagesOfOrders(
  query: (given: Record<string, string>) => string,
  text: string,
  i: number,
): string[] {
  return [
    ...(i === 0 ? ["/console/orders", "/console/endpoints"] : []),
    `/console/orders${query({ order_id: text })}`,
    `/console/orders${query({ idempotency_key: text })}`,
    `/console/endpoints${query({ endpoint_id: endpointOf(i) })}`,
    `/console/endpoints${query({ endpoint_id: text })}`,
    `/console/endpoints${query({ state: text, cursor: text })}`,
    `/console/endpoints/replay${query({ endpoint_id: text })}`,
    `/console/endpoints/replay${query({ endpoint_id: endpointOf(i), from: text, to: text })}`,
    `/console/timeline${query({ by: "order_id", q: text })}`,
    "/console/dead-letters?layer=order",
    `/console/dead-letters${query({ layer: "order", error: text })}`,
    `/console/dead-letters/send-back${query({ layer: "order", error: text })}`,
  ];
}

export function pagesOfPoints(
  query: (given: Record<string, string>) => string,
  text: string,
): string[] {
  return [
    "/console/points",
    `/console/points${query({ user_id: text })}`,
    `/console/points${query({ user_id: text, unit: text, cursor: text })}`,
    `/console/timeline${query({ by: "reservation_id", q: text })}`,
    "/console/dead-letters?layer=reservation",
    `/console/dead-letters${query({ layer: "reservation", error: text })}`,
    `/console/dead-letters/send-back${query({ layer: "reservation", error: text })}`,
  ];
}
