// Writes a change as the previous release of the entitlement service does, without callers and
// audit chains. That release still runs while the newest migration is applied, and for some time
// after.
import { query, type Transaction } from "../../shared/postgres/postgres.ts";
import type { Database } from "../../shared/postgres/postgres.ts";

export interface OldChange {
  user: string;
  version: number; // grants are odd
  at?: string; // now by default
}

export async function changeAsBefore(
  on: Database | Transaction,
  { user, version, at }: OldChange,
): Promise<void> {
  await query(
    on,
    `with change as materialized (
       select $1::uuid as event_id, $2::text as user_id, $3::bigint as version,
         case when $3::bigint % 2 = 1 then 'GRANT' else 'REVOKE' end as action,
         coalesce($4::timestamptz, clock_timestamp()) as time
     ), stored as (
       insert into entitlements as entitlement
         (user_id, stock_keeping_unit, status, granted_at, revoked_at, source, source_id, version,
          updated_at)
       select user_id, 'book', case action when 'GRANT' then 'ACTIVE' else 'REVOKED' end,
         case action when 'GRANT' then time end, case action when 'REVOKE' then time end,
         'purchase', 'p-1', version, time
       from change
       on conflict (user_id, stock_keeping_unit) do update set
         status = excluded.status,
         granted_at = coalesce(excluded.granted_at, entitlement.granted_at),
         revoked_at = coalesce(excluded.revoked_at, entitlement.revoked_at),
         source = excluded.source,
         source_id = excluded.source_id,
         version = excluded.version,
         updated_at = excluded.updated_at
     ), announced as (
       insert into outbox_events (event_id, event_type, aggregate_key, payload, created_at)
       select event_id, 'EntitlementGranted', user_id || ':book', '{}', time
       from change
     ), audited as (
       insert into entitlement_audit
         (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
          detail)
       select event_id, time, user_id, 'book', action, 'purchase', 'p-1', event_id::text,
         jsonb_build_object('version', version, 'trace_id', 'trace')
       from change
     )
     insert into idempotency_keys
       (idem_key, request_hash, response_code, response_body, created_at, expires_at)
     select event_id::text, 'hash', 200, '{}', now(), now() + interval '1 day'
     from change`,
    [crypto.randomUUID(), user, version, at ?? null],
  );
}
