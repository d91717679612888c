import { listOf } from "@kenri/shared/queue/leases.ts";
import type { Operation } from "@kenri/shared/operators/operations.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { eventTypeOf } from "../entitlement.ts";
import { renewsKey } from "../outbox.ts";
import type { AuditedEvent } from "./check.ts";

// Puts events that were published and not received back to PENDING. One that the outbox has deleted is
// made again from the audit, as the same event: who has received it after all removes it as a
// duplicate. Rows are locked and inserted in the order of their ids, like everywhere that events are
// put back. Returns the ids of those that were put back.
export async function mendEvents(
  database: Database,
  events: AuditedEvent[],
  { id, who, reason }: Operation,
): Promise<string[]> {
  if (events.length === 0) return [];
  const rows = await query<{ event_id: string }>(
    database,
    `with published as (
       select event_id, stream_seq
       from outbox_events
       where event_id = any($1::uuid[])
         and status = 'PUBLISHED'
       order by event_id
       for update
     ), put_back as (
       update outbox_events row
       set status = 'PENDING', attempt_count = 0, published_at = null,
         stream_generation = null, stream_seq = null,
         ${renewsKey}
       from published
       where row.event_id = published.event_id
     ), made_again as (
       insert into outbox_events (event_id, event_type, aggregate_key, payload, created_at)
       select audit_id, event_type, aggregate_key_of(user_id, stock_keeping_unit),
         jsonb_build_object(
           'event_id', audit_id, 'event_type', event_type,
           'occurred_at', to_char(
             audit.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
           'user_id', user_id, 'stock_keeping_unit', stock_keeping_unit,
           'source', source, 'source_id', source_id,
           'version', detail->'version', 'trace_id', detail->'trace_id'),
         audit.occurred_at
       from unnest($1::uuid[], $2::timestamptz[]) as wanted (event_id, occurred_at)
       join entitlement_audit audit
         on audit.occurred_at = wanted.occurred_at
         and audit.audit_id = wanted.event_id
       cross join lateral (
         select case audit.action when 'GRANT' then $3::text else $4 end as event_type
       ) as named
       where not exists (select from outbox_events row where row.event_id = wanted.event_id)
       order by wanted.event_id
       on conflict (event_id) do nothing
       returning event_id
     ), mended as (
       select event_id, 'PUBLISHED' as state, stream_seq from published
       union all
       select event_id, 'DELETED', null from made_again
     ), recorded as (
       insert into outbox_attempts (event_id, outcome, stream_seq, operation_id)
       select event_id, 'MENDED', stream_seq, $5::uuid from mended
     ), operation as (
       insert into operations (operation_id, kind, layer, who, reason, items)
       select $5, 'MEND', 'outbox', $6, $7,
         jsonb_agg(jsonb_build_object(
           'event_id', event_id, 'from', state, 'stream_seq', stream_seq))
       from mended
       having count(*) > 0
     ), open as (
       select unreceived.event_id
       from mended
       join unreceived_events unreceived on unreceived.event_id = mended.event_id
       order by unreceived.event_id
       for update of unreceived
     ), counted as (
       update unreceived_events unreceived
       set mended_at = now(), mends = mends + 1
       from open
       where unreceived.event_id = open.event_id
     )
     select event_id from mended`,
    [
      listOf(events.map(({ event_id }) => event_id)),
      events.map(({ occurred_at }) => occurred_at),
      eventTypeOf.GRANT,
      eventTypeOf.REVOKE,
      id,
      who,
      reason,
    ],
  );
  return rows.map(({ event_id }) => event_id);
}
