import type { EventFields } from "@kenri/proto/entitlement/decode.ts";
import { type Database, query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { auditHash } from "../audit/hash.ts";
import { eventTypeOf, statusAfter } from "../entitlement.ts";
import { announceChanges } from "../store_changes.ts";
import type { Candidate } from "./examine.ts";

// PostgreSQL hides the application names of other roles from an owner who is not a superuser, so a
// session of the service's role counts as the service.
export async function refuseWhileServing(database: Database, role: string): Promise<void> {
  const sessions = await query(
    database,
    `select from pg_stat_activity
     where datname = current_database()
       and (application_name = 'entitlement' or usename = $1 and usename <> current_user)`,
    [decodeURIComponent(role)],
  );
  if (sessions.length > 0) throw new Error("The entitlement service is running: stop it first");
}

// The stream stores an event a moment after its change, and by another clock.
const clocksDifferMs = 3_600_000;

export async function findLastChange(database: Database): Promise<Date> {
  const [row] = await query<{ at: Date | null }>(
    database,
    "select max(occurred_at) as at from entitlement_audit",
  );
  return new Date((row?.at?.getTime() ?? clocksDifferMs) - clocksDifferMs);
}

export async function findNewer(database: Database, events: Candidate[]): Promise<Candidate[]> {
  const newer = await query<{ event_id: string }>(
    database,
    `select event.event_id
     from jsonb_to_recordset($1) as event (
       event_id text, user_id text, stock_keeping_unit text, unit text, version bigint)
     left join entitlements known using (user_id, stock_keeping_unit)
     left join point_root root
       on root.user_id = event.user_id
       and root.unit = event.unit
     where event.version > coalesce(known.version, root.version, 0)`,
    [JSON.stringify(events.map(({ payload }) => payload))],
  );
  const ids = new Set(newer.map(({ event_id }) => event_id));
  return events.filter(({ payload }) => ids.has(`${payload["event_id"]}`));
}

// Skips a version that the database has reached already. The event is published again, and
// receivers remove the duplicate. The caller and the Idempotency-Key are not part of an event, so
// they are lost. The audit chain continues from its last row in the backup.
export async function storeChange(
  tx: Transaction,
  event: EventFields,
  maySkipVersions: boolean,
): Promise<boolean> {
  const stored = await query(
    tx,
    `with change as materialized (
       select *, ${auditHash("entry")} as hash
       from (
         select event.*, event_id as audit_id, 'recovered' as request_id,
           null::text as caller, before.last_hash as previous_hash, before.hashed_at as previous_at,
           case event_type when 'EntitlementGranted' then 'GRANT' else 'REVOKE' end as action,
           jsonb_build_object('version', event.version, 'trace_id', trace_id) as detail,
           gen_random_uuid() as salt
         from jsonb_to_record($1) as event (
           event_id uuid, event_type text, user_id text, stock_keeping_unit text, source text,
           source_id text, version bigint, trace_id text, occurred_at timestamptz)
         left join entitlements before using (user_id, stock_keeping_unit)
         where event_type in ('EntitlementGranted', 'EntitlementRevoked')
           and ($2 or event.version = coalesce(before.version, 0) + 1)
         offset 0 -- so that PostgreSQL evaluates this only once
       ) as entry
     ), stored as (
       insert into entitlements as entitlement
         (user_id, stock_keeping_unit, status, granted_at, revoked_at, source, source_id, version,
          updated_at, last_hash, hashed_at)
       select user_id, stock_keeping_unit, case action when 'GRANT' then 'ACTIVE' else 'REVOKED' end,
         case action when 'GRANT' then occurred_at end,
         case action when 'REVOKE' then occurred_at end,
         source, source_id, version, occurred_at, hash, occurred_at
       from change
       on conflict (user_id, stock_keeping_unit) do update set
         status = excluded.status,
         granted_at = coalesce(excluded.granted_at, entitlement.granted_at),
         revoked_at = coalesce(excluded.revoked_at, entitlement.revoked_at),
         source = excluded.source,
         source_id = excluded.source_id,
         version = excluded.version,
         updated_at = excluded.updated_at,
         last_hash = excluded.last_hash,
         hashed_at = excluded.hashed_at
       where entitlement.version < excluded.version
       returning version
     )
     insert into entitlement_audit
       (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
        caller, detail, salt, previous_hash, previous_at, hash)
     select audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id,
       request_id, caller, detail, salt, previous_hash, previous_at, hash
     from change
     join stored using (version)
     returning 1`,
    [JSON.stringify(event), maySkipVersions],
  );
  if (stored.length === 0) return false;
  await finishReservation(tx, event);
  await announceChanges(tx, [{ fields: event, traceparent: null }]);
  return true;
}

// A change that was reserved has the trace id of its reservation. If the backup has the reservation,
// it must not be carried out again: the right may have changed since.
async function finishReservation(tx: Transaction, event: EventFields): Promise<void> {
  const action = event.event_type === eventTypeOf.GRANT ? "GRANT" : "REVOKE";
  const { user_id, stock_keeping_unit, version, occurred_at: updated_at } = event;
  const body = { user_id, stock_keeping_unit, status: statusAfter[action], version, updated_at };
  await query(
    tx,
    sql`
    update point_reservations
    set status = 'DONE',
      outcome = ${JSON.stringify({ status: 200, body })}::json,
      claim_token = null,
      updated_at = ${updated_at}::timestamptz,
      done_at = ${updated_at}::timestamptz
    where id = (
      select id
      from point_reservations
      where user_id = ${user_id}
        and stock_keeping_unit = ${stock_keeping_unit}
        and kind = ${action}
        and source = ${event.source}
        and source_id = ${event.source_id}
        and trace_id = ${event.trace_id}
        and status not in ('DONE', 'CANCELLED')
        and execute_at <= ${updated_at}::timestamptz
      order by position
      limit 1)`,
  );
}
