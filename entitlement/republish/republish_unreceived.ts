import type { Operation } from "@kenri/shared/operators/operations.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { listOf } from "@kenri/shared/queue/leased_row.ts";
import { eventTypeOf } from "../entitlement.ts";
import type { AuditedEvent } from "../reconciliation/check.ts";
import { becomesPending, recordsAttempts, recordsOperation } from "./republish.ts";

// Republishes events that were published and not received, and counts that for each of them. An
// event that the outbox has deleted is written again from the audit, with the same id and content.
// Returns the ids of the events that were republished.
export async function republishUnreceived(
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
       where event_id = any($4::uuid[])
         and status = 'PUBLISHED'
       order by event_id
       for update
     ), republished as (
       update outbox_events row
       set ${becomesPending}
       from published
       where row.event_id = published.event_id
     ), ${writtenFromAudit},
     chosen as (
       select event_id, 'PUBLISHED' as state, stream_seq from published
       union all
       select event_id, 'DELETED', null from written
     ), ${recordsAttempts("MENDED")},
     ${recordsOperation("MEND", "'from', state, 'stream_seq', stream_seq")},
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
    [
      id,
      who,
      reason,
      listOf(events.map(({ event_id }) => event_id)),
      events.map(({ occurred_at }) => occurred_at),
      eventTypeOf.GRANT,
      eventTypeOf.REVOKE,
    ],
  );
  return rows.map(({ event_id }) => event_id);
}

// Events that the outbox has deleted become new PENDING rows, made from their audit rows.
const writtenFromAudit = `written as (
       insert into outbox_events (event_id, event_type, aggregate_key, payload, created_at)
       select audit_id, event_type, aggregate_key_of(user_id, stock_keeping_unit),
         jsonb_build_object(
           'event_id', audit_id, 'event_type', event_type,
           'occurred_at', ${utc("audit.occurred_at")},
           'user_id', user_id, 'stock_keeping_unit', stock_keeping_unit,
           'source', source, 'source_id', source_id,
           'version', detail->'version', 'trace_id', detail->'trace_id'),
         audit.occurred_at
       from unnest($4::uuid[], $5::timestamptz[]) as wanted (event_id, occurred_at)
       join entitlement_audit audit
         on audit.occurred_at = wanted.occurred_at
         and audit.audit_id = wanted.event_id
       cross join lateral (
         select case audit.action when 'GRANT' then $6::text else $7 end as event_type
       ) as named
       where not exists (select from outbox_events row where row.event_id = wanted.event_id)
       order by wanted.event_id
       on conflict (event_id) do nothing
       returning event_id
     )`;
