import { recordsOperation } from "@kenri/shared/operators/record_operation.ts";
import { query, type Transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { literal, nothing, sql } from "@kenri/shared/postgres/sql.ts";
import type { Position, Replayed, ReplayRange } from "./replay.ts";

export interface Replayable {
  orderIds: string[]; // the oldest first
  next: Position | undefined; // if more orders may follow
}

// A call replays so many orders, and looks at so many to find them.
const mostReplayed = 500;
const mostSeen = 10_000;

// Orders that can be replayed: those that ended before the replay began. The orders are locked in the
// order of their ids, so that two statements can't deadlock, and looked at again once they are.
export async function findReplayable(tx: Transaction, replay: ReplayRange): Promise<Replayable> {
  const { id, from, to, eventTypes, only, dryRun, after } = replay;
  const [begun, createdAt, orderId] = after ?? [null, null, null];
  const [found] = await query<{ ids: string[] | null; next: Position | null }>(
    tx,
    sql`with begun as materialized (
  select coalesce(${begun}::timestamptz, now()) as at
), seen as materialized (
  select id, created_at, finished_at <= (select at from begun)
    and ${only === "ALL" ? sql`(status = ${literal("SUCCEEDED")} or is_dead)` : sql`is_dead`}
    and request_digest <> 'erased' -- what was sent is not known any more
    and (expires_at is null or expires_at > now())${
      eventTypes
        ? sql`
    and event_type = any(${eventTypes})`
        : nothing
    } as is_wanted
  from outbox_orders
  where endpoint_id = ${id}
    and created_at >= ${from}::timestamptz
    and created_at < ${to}::timestamptz${
      after
        ? sql`
    and (created_at, id) > (${createdAt}::timestamptz, ${orderId}::uuid)`
        : nothing
    }
  order by created_at, id
  limit ${mostSeen}
), wanted as materialized (
  select id, created_at
  from seen
  where is_wanted
  order by created_at, id
  limit ${dryRun ? mostSeen : mostReplayed}
), locked as materialized (
  select row.id, row.created_at
  from wanted
  join outbox_orders row on row.id = wanted.id
  where row.finished_at <= (select at from begun)
  order by row.id
  for update of row
), last as (
  (select created_at, id
  from wanted
  order by created_at, id
  offset ${mostReplayed - 1}
  limit case when ${dryRun} then 0 else 1 end)
  union all
  (select created_at, id from seen order by created_at, id offset ${mostSeen - 1})
  limit 1
)
select (select json_agg(id order by created_at, id) from locked) as ids,
  (
    select json_build_array(${utc(sql`begun.at`)}, ${utc(sql`last.created_at`)}, last.id)
    from last, begun
  ) as next`,
  );
  return { orderIds: found?.ids ?? [], next: found?.next ?? undefined };
}

// The orders begin anew, with all their attempts, behind what is already due.
export async function replayOrders(tx: Transaction, effects: Replayed[]): Promise<never[]> {
  for (const { orderIds, parks, operation } of effects) {
    await query(
      tx,
      sql`with chosen as materialized (
  select row.id, row.status, wanted.nth
  from unnest(${orderIds}::uuid[]) with ordinality as wanted (id, nth)
  join outbox_orders row on row.id = wanted.id
), ${
        recordsOperation(operation, {
          kind: "REPLAY",
          layer: "order",
          item: sql`'order_id', id, 'from', status`,
          of: "chosen",
        })
      }, recorded as (
  insert into order_attempts (id, outcome, operation_id)
  select id, 'REPLAYED', ${operation.id}::uuid
  from chosen
)
update outbox_orders row
set status = ${literal(parks ? "PARKED" : "PENDING")},
  attempts = 0,
  last_error_code = null,
  last_error_msg = null,
  next_run_at = now() + chosen.nth * interval '1 microsecond',
  throttled_since = null,
  operation_id = ${operation.id}::uuid,
  updated_at = now(),
  finished_at = null
from chosen
where row.id = chosen.id`,
    );
  }
  return []; // so that the worker is woken after the commit
}
