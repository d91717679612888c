import type { Operation } from "@kenri/shared/operators/operations.ts";
import { insertsEvents } from "@kenri/shared/outbox/announce.ts";
import { republishes } from "@kenri/shared/outbox/republish.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { listOf, type Sql, sql } from "@kenri/shared/postgres/sql.ts";
import { eventTypeOf } from "../entitlement.ts";
import { outbox } from "../outbox.ts";
import type { AuditedEvent } from "./check.ts";

// Republishes events that were published and not received, and counts that for each of them. An
// event that the outbox has deleted is written again from the audit, with the same id and content.
// Returns the ids of the events that were republished.
export async function republishUnreceived(
  database: Database,
  events: AuditedEvent[],
  operation: Operation,
): Promise<string[]> {
  if (events.length === 0) return [];
  const ids = listOf(events.map(({ event_id }) => event_id));
  const times = events.map(({ occurred_at }) => occurred_at);
  const rows = await query<{ event_id: string }>(
    database,
    sql`with published as (
       select event_id, status, stream_seq
       from outbox_events
       where event_id = any(${ids}::uuid[])
         and status = 'PUBLISHED'
       order by event_id
       for update
     ), written as (
       ${insertsEvents(outbox, eventsOfAudit(ids, times))}
       on conflict (event_id) do nothing
       returning event_id
     ), chosen as (
       select event_id, status as state, stream_seq from published
       union all
       select event_id, 'DELETED', null from written
     ), ${republishes(outbox, "unreceived", operation)},
     unreceived as (
       select open.event_id
       from chosen
       join unreceived_events open on open.event_id = chosen.event_id
       order by open.event_id
       for update of open
     ), counted as (
       update unreceived_events open
       set mended_at = now(), mends = mends + 1
       from unreceived
       where open.event_id = unreceived.event_id
     )
     select event_id from chosen`,
  );
  return rows.map(({ event_id }) => event_id);
}

// Events that the outbox has deleted are made again from their audit rows. Only the transaction has
// the reservation of points.
function eventsOfAudit(ids: string, times: string[]): Sql {
  return sql`select audit_id as event_id, event_type, aggregate_key,
      jsonb_build_object(
        'event_id', audit_id, 'event_type', event_type,
        'occurred_at',
        ${utc(sql`audit.occurred_at`)},
        'user_id', audit.user_id, 'source', audit.source, 'source_id', audit.source_id,
        'version', detail->'version', 'trace_id', detail->'trace_id') || about as payload,
      null as traceparent, audit.occurred_at as created_at
    from unnest(${ids}::uuid[], ${times}::timestamptz[]) as wanted (event_id, occurred_at)
    join entitlement_audit audit
      on audit.occurred_at = wanted.occurred_at
      and audit.audit_id = wanted.event_id
    left join point_transactions points on points.id = audit.audit_id
    cross join lateral (
      select case audit.action
        when 'GRANT' then ${eventTypeOf.GRANT}::text
        when 'REVOKE' then ${eventTypeOf.REVOKE}
        when 'POINTS_ADD' then 'PointsAdded'
        else 'PointsTaken' end as event_type,
      case when audit.action in ('GRANT', 'REVOKE') then audit.stock_keeping_unit end as right_to,
      substr(audit.stock_keeping_unit, length('points:') + 1) as unit
    ) as named
    cross join lateral (
      select aggregate_key_of(audit.user_id, right_to) as aggregate_key,
        jsonb_build_object('stock_keeping_unit', right_to) as about
      where right_to is not null
      union all
      select points_key_of(audit.user_id, named.unit),
        jsonb_build_object(
          'unit', named.unit, 'point_amount', detail->'point_amount',
          'balance', detail->'balance', 'transaction_id', audit_id,
          'reservation_id', points.reservation_id)
      where right_to is null
    ) as subject
    where not exists (select from outbox_events row where row.event_id = wanted.event_id)
    order by wanted.event_id`;
}
