import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";

// To park orders is to take them out of the indexes that claims read, so that they cost nothing while
// their endpoint can't have them.

// Small enough that no lock is held for long.
export const batchSize = 500;

// The orders of an endpoint that wait for a worker, by its id as a text. All keys of an endpoint
// begin with its id, which is at the end or before a colon.
export function unfinishedOf(id: Sql): Sql {
  return sql`row.unfinished::int = 1
      and row.aggregate_key >= ${id}
      and row.aggregate_key < ${id} || ';'`;
}

// An order that a worker has in hand is parked when that returns it. A probe is let through.
export const mayBeParked: Sql = sql`row.status <> 'SENDING'
      and (endpoint.state <> 'FAILING' or row.id is distinct from endpoint.probe_order_id)`;

// Until this time, also while it is parked.
export function waitsForPredecessor(row: Sql): Sql {
  return sql`${row}.awaits_predecessor and ${row}.next_run_at > now()`;
}

// Parks a batch of the waiting orders of an endpoint that is not ACTIVE. The endpoint stays locked
// until the commit, so that it can't become ACTIVE and end its draining before that. This and other
// replicas may share the lock. The later orders of a key come first: if the endpoint is ACTIVE again
// before all are parked, the earlier ones are sent meanwhile.
//
// Locked orders are left for the next batch. If one of them is sent by a quick change of the state,
// while an earlier one of its key is parked, its worker puts it back (is_behind_parked in orders.ts).
export async function parkBatch(database: Database, endpointId: string): Promise<number> {
  const parked = await query(
    database,
    sql`with endpoint as materialized (
  select endpoint_id, state, probe_order_id
  from endpoints
  where endpoint_id = ${endpointId}
    and state <> 'ACTIVE'
  for share
), chosen as materialized (
  select row.id
  from endpoint
  cross join lateral (
    select row.id
    from outbox_orders row
    where ${unfinishedOf(sql`endpoint.endpoint_id::text`)}
      and ${mayBeParked}
    order by row.aggregate_key desc, row.position desc
    limit ${batchSize}
    for update skip locked
  ) as row
)
update outbox_orders row
set status = 'PARKED',
  next_run_at = case when ${waitsForPredecessor(sql`row`)} then next_run_at end,
  throttled_since = null, -- no time passes for a parked order
  updated_at = now()
from chosen
where row.id = chosen.id
returning 1`,
  );
  return parked.length;
}
