import { type Database, query, transaction } from "@kenri/shared/postgres/postgres.ts";
import { type Sql, sql } from "@kenri/shared/postgres/sql.ts";
import { batchSize, unfinishedOf, waitsForPredecessor } from "./park.ts";

// When an endpoint is ACTIVE again, its parked orders return, the oldest first.

// A slow endpoint must not fill the index of claims, so no more of its orders wait at a time.
const mostWaiting = 2_000;

export interface Unparked {
  count: number;
  isFull: boolean; // the rest has to wait until some of these are sent
}

// Returns a batch of the parked orders of an endpoint to the worker, each due a little later than the
// one before, because the worker begins with what is due first.
export async function unparkBatch(database: Database, endpointId: string): Promise<Unparked> {
  const [unparked] = await query<{ count: number; room: number }>(
    database,
    sql`with ${chosenOf(endpointId)}, unparked as (
  update outbox_orders row
  set status = 'PENDING',
    next_run_at = case when ${waitsForPredecessor(sql`row`)} then row.next_run_at
      else now() + numbered.nth * interval '1 microsecond' end,
    updated_at = now()
  from (select id, row_number() over (order by created_at, position) as nth from chosen) as numbered
  where row.id = numbered.id
  returning 1
)
select (select count(*) from unparked) as count, (select room from room) as room`,
  );
  return { count: unparked?.count ?? 0, isFull: (unparked?.room ?? 0) <= 0 };
}

// An order never returns before an earlier one of its key, even if that was stored later; so those
// come along. While there is no room, only those return that others wait for. The rows are locked
// without skipping any: a second replica waits for the batch of the first, and takes none of it. They
// are locked in the order of their ids, so that no two statements can deadlock.
function chosenOf(endpointId: string): Sql {
  return sql`endpoint as materialized (
  select endpoint_id
  from endpoints
  where endpoint_id = ${endpointId}
    and state = 'ACTIVE'
    and is_draining
), waiting as materialized (
  select row.aggregate_key, row.position
  from endpoint
  cross join lateral (
    select row.aggregate_key, row.position
    from outbox_orders row
    where ${unfinishedOf(sql`endpoint.endpoint_id::text`)}
    limit ${mostWaiting}
  ) as row
), room as materialized (
  select least(${batchSize}, ${mostWaiting} - count(*)) as room from waiting
), oldest as materialized (
  select row.*
  from endpoint
  cross join lateral (
    select row.id, row.aggregate_key, row.position
    from outbox_orders row
    where row.parked
      and row.endpoint_id = endpoint.endpoint_id
    order by row.created_at, row.position
    limit (select room from room)
  ) as row
), wanted as (
  select aggregate_key, max(position) as last
  from (
    select aggregate_key, position from oldest
    union all
    -- Nothing may wait for an order that has no room.
    select aggregate_key, position from waiting where (select room from room) <= 0
  ) as row
  group by aggregate_key
), candidate as materialized (
  select row.id
  from wanted
  cross join lateral (
    select row.id
    from outbox_orders row
    where row.parked
      and row.aggregate_key = wanted.aggregate_key
      and row.position <= wanted.last
    order by row.position
    limit ${batchSize}
  ) as row
), chosen as materialized (
  select row.id, row.created_at, row.position
  from candidate
  join outbox_orders row on row.id = candidate.id
  where row.parked
  order by row.id
  for update of row
)`;
}

// Ends the draining of an endpoint without parked orders. Who writes a parked order shares a lock of
// the endpoint until its commit. So once this transaction has the lock, its next statement sees
// every parked order, and no other one can follow. If the lock is not free, false is returned.
export function endDraining(database: Database, endpointId: string): Promise<boolean> {
  return transaction(database, async (tx) => {
    const locked = await query(
      tx,
      sql`
      select 1
      from endpoints
      where endpoint_id = ${endpointId}
        and state = 'ACTIVE'
        and is_draining
      for update skip locked`,
    );
    if (locked.length === 0) return false;
    const ended = await query(
      tx,
      sql`
      update endpoints
      set is_draining = false
      where endpoint_id = ${endpointId}
        and not exists (
          select from outbox_orders
          where parked
            and endpoint_id = ${endpointId})
      returning 1`,
    );
    return ended.length > 0;
  });
}
