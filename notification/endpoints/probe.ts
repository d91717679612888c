import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { EndpointOptions } from "../orders/settings.ts";
import { waitsForPredecessor } from "./park.ts";

// The probe of a FAILING endpoint is its oldest parked order: the worker sends that one although the
// endpoint is FAILING. What comes of it is noted by noteOutcomes (health.ts).

// Lets an order through, of a key the first, because it may succeed. One whose predecessor is not
// received yet goes on waiting for it. The statement changes the
// endpoint and the order together, so there is one probe at a time, whatever replica sends it. If its
// worker dies, another one takes it over like every order.
export async function letProbeThrough(database: Database, endpointId: string): Promise<boolean> {
  const probes = await query(
    database,
    sql`with endpoint as materialized (
  select endpoint_id
  from endpoints
  where endpoint_id = ${endpointId}
    and state = 'FAILING'
    and probe_order_id is null
    and next_probe_at <= now()
  for no key update skip locked
), oldest as materialized (
  select row.aggregate_key
  from endpoint
  cross join lateral (
    select row.aggregate_key
    from outbox_orders row
    where row.parked
      and row.endpoint_id = endpoint.endpoint_id
      and not exists (
        select from outbox_orders waiting
        where waiting.parked
          and waiting.aggregate_key = row.aggregate_key
          and ${waitsForPredecessor(sql`waiting`)})
    order by row.created_at, row.position
    limit 1
  ) as row
), chosen as materialized (
  select row.id
  from oldest
  cross join lateral (
    select row.id
    from outbox_orders row
    where row.parked
      and row.aggregate_key = oldest.aggregate_key
    order by row.position
    limit 1
    for update skip locked
  ) as row
), probe as (
  update outbox_orders row
  set status = 'PENDING',
    next_run_at = now(),
    updated_at = now()
  from chosen
  where row.id = chosen.id
  returning row.id
)
update endpoints
set probe_order_id = probe.id
from probe
where endpoint_id = ${endpointId}
returning 1`,
  );
  return probes.length > 0;
}

// Ends a probe whose outcome was not noted some time after it ended: its process died in between, or
// it was returned or given up without being sent. If it was sent successfully, the endpoint is up.
// Otherwise the next probe follows after the same time as this one, or at once if this order will not
// be sent again.
export async function endLostProbe(
  database: Database,
  endpointId: string,
  { probeMinMs, probeMaxMs }: Pick<EndpointOptions, "probeMinMs" | "probeMaxMs">,
): Promise<boolean> {
  const ended = await query(
    database,
    sql`with lost as materialized (
  select endpoint.endpoint_id, probe.status
  from endpoints endpoint
  left join outbox_orders probe on probe.id = endpoint.probe_order_id
  where endpoint.endpoint_id = ${endpointId}
    and endpoint.state = 'FAILING'
    and endpoint.probe_order_id is not null
    and probe.unfinished is not true
    and coalesce(probe.updated_at, '-infinity') < now() - interval '2 seconds'
  for no key update of endpoint skip locked
)
update endpoints endpoint
set probe_order_id = null,
  state = case when status = 'SUCCEEDED' then 'ACTIVE' else state end,
  state_since = case when status = 'SUCCEEDED' then now() else state_since end,
  is_draining = is_draining or status is not distinct from 'SUCCEEDED',
  failures = case when status = 'SUCCEEDED' then 0 else failures end,
  failing_since = case when status = 'SUCCEEDED' then null else failing_since end,
  probes = case when status = 'SUCCEEDED' then 0 else probes end,
  next_probe_at = case status
    when 'SUCCEEDED' then null
    when 'PARKED' then now() + make_interval(secs =>
      least(${probeMaxMs}::float8, ${probeMinMs}::float8 * power(2, least(probes, 60))) / 1000)
    else now() end
from lost
where endpoint.endpoint_id = lost.endpoint_id
returning 1`,
  );
  return ended.length > 0;
}
