import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";

// Each new event becomes an order for every endpoint that wants it, in the statement that receives
// the event. So processed_events decides once for both, the notification and the orders.

// Whether any endpoint exists. Without one the statement has no part for orders, because planning it
// would cost every event. Each statement looks for itself, so it does no harm that this is only what
// was true last time.
export class FanOut {
  isOn = true;
}

export const anyEndpoint: Sql = sql`exists (select from endpoints where state <> 'DELETED')`;

// Without the part for orders nothing may be received once there is an endpoint.
export const unlessEndpoints: Sql = sql`
  where not ${anyEndpoint}`;

// The part of the statement that reads new_notification. Endpoints that park their orders are locked,
// so that none is parked after the last one was let go (keep_endpoints.ts). An order waits for its
// predecessor exactly like its notification. Its id has the time of its event.
export function fansOut(predecessorWaitMs: number): Sql {
  return sql`parking as (
  select endpoint_id
  from endpoints
  where state <> 'ACTIVE' or is_draining
  order by endpoint_id
  for share
), fanned_out as (
  insert into outbox_orders
    (id, idempotency_key, caller, adapter, order_request_json, request_digest, lane, endpoint_id,
     event_id, event_type, user_id, aggregate_key, position, awaits_predecessor, status, next_run_at,
     trace_id, traceparent)
  select overlay(gen_random_uuid()::text placing left(event.event_id::text, 15) from 1)::uuid,
    event.event_id || ':' || endpoint.endpoint_id, endpoint.caller, 'webhook', request.json,
    encode(sha256(convert_to(request.json::jsonb::text, 'UTF8')), 'hex'), endpoint.endpoint_id,
    endpoint.endpoint_id, event.event_id, event.type, event.user_id,
    case endpoint.ordering
      when 'key' then endpoint.endpoint_id || ':' || event.aggregate_key
      when 'endpoint' then endpoint.endpoint_id::text
      else endpoint.endpoint_id || ':' || event.event_id end,
    case endpoint.ordering
      when 'key' then event.version
      when 'endpoint' then (extract(epoch from event.occurred_at) * 1000000)::bigint
      else 0 end,
    waits.for_predecessor,
    case when parking.endpoint_id is null then 'PENDING' else 'PARKED' end,
    case when waits.for_predecessor
      then now() + make_interval(secs => ${predecessorWaitMs}::float8 / 1000) else now() end,
    coalesce(event.payload->>'trace_id', ''), event.traceparent
  from new_notification event
  join endpoints endpoint
    on endpoint.state <> 'DELETED'
    and (endpoint.event_types is null or event.type = any(endpoint.event_types))
    and (endpoint.user_id is null or endpoint.user_id = event.user_id)
  left join parking on parking.endpoint_id = endpoint.endpoint_id
  cross join lateral (
    select json_build_object(
        'adapter', 'http',
        'endpoint_id', endpoint.endpoint_id,
        'payload', json_build_object(
          'type', event.type,
          'timestamp', event.payload->>'occurred_at',
          'data', event.payload)) as json
  ) as request
  cross join lateral (
    select endpoint.ordering <> 'none' and event.awaits_predecessor as for_predecessor
  ) as waits
  on conflict (idempotency_key) do nothing
  returning status
), `;
}

// Whether a worker should look for new orders.
export const anyFannedOut: Sql = sql`exists (select from fanned_out where status = 'PENDING')`;

// The part of the statement that ends waits; `over` has the notifications that wait no more.
export const endsWaitsOfOrders: Sql = sql`, orders_over as (
  update outbox_orders waiting
  set awaits_predecessor = false, next_run_at = now()
  from over
  where waiting.event_id = over.notification_id -- a notification has the id of its event
    and waiting.awaits_predecessor
)`;
