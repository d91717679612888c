import { announce } from "@kenri/shared/outbox/announce.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { NewLease } from "@kenri/shared/queue/handover.ts";
import { type Change, eventTypeOf } from "./change.ts";
import { outbox } from "./outbox.ts";

// The rows of changes, one statement for each table.

export async function updateUsers(tx: Transaction, changes: Change[]): Promise<void> {
  const rows = changes.map(({ user, at }) => ({ ...user, at }));
  await query(
    tx,
    sql`
    update users
    set display_name = changed.display_name,
      locale = changed.locale,
      status = changed.status,
      version = changed.version,
      session_epoch = changed.session_epoch,
      updated_at = changed.updated_at,
      last_event_at = changed.at
    from json_to_recordset(${JSON.stringify(rows)}) as changed (
      user_id uuid, display_name text, locale text, status text, version bigint,
      session_epoch bigint, updated_at timestamptz, at timestamptz)
    where users.user_id = changed.user_id`,
  );
}

export async function storeRoles(tx: Transaction, changes: Change[]): Promise<void> {
  const rows = changes.map(({ user: { user_id, roles } }) => ({ user_id, roles }));
  await query(
    tx,
    sql`
    with wanted as (
      select user_id, roles
      from json_to_recordset(${JSON.stringify(rows)}) as wanted (user_id uuid, roles text[])
    ), taken as (
      delete from account_roles
      using wanted
      where account_roles.user_id = wanted.user_id
        and account_roles.role <> all(wanted.roles)
    )
    insert into account_roles (user_id, role)
    select user_id, unnest(roles)
    from wanted
    on conflict do nothing`,
  );
}

export async function storeAudit(tx: Transaction, changes: Change[]): Promise<void> {
  const rows = changes.map(({ request, user, action, at, eventId, reason, detail }) => ({
    audit_id: eventId,
    occurred_at: at,
    user_id: user.user_id,
    action,
    actor: request.actor,
    reason,
    version: user.version,
    detail,
    trace_id: request.traceId,
  }));
  await query(
    tx,
    sql`
    insert into audit_logs
      (audit_id, occurred_at, user_id, action, actor, reason, version, detail, trace_id)
    select audit_id, occurred_at, user_id, action, actor, reason, version, detail, trace_id
    from json_populate_recordset(null::audit_logs, ${JSON.stringify(rows)})`,
  );
}

export async function storeEndedSessions(tx: Transaction, changes: Change[]): Promise<void> {
  const rows = changes.map(({ user: { user_id }, session, at }) => ({
    ...session,
    user_id,
    ended_at: at,
  }));
  await query(
    tx,
    sql`
    insert into ended_sessions (session_id, user_id, ended_at, expires_at)
    select session_id, user_id, ended_at, expires_at
    from json_populate_recordset(null::ended_sessions, ${JSON.stringify(rows)})
    on conflict do nothing`,
  );
}

// Returns the events that were written as leased.
export function announceChanges(
  tx: Transaction,
  changes: Change[],
  lease: NewLease | undefined,
): Promise<OutboxRow[]> {
  const rows = changes.map(({ request, user, action, at, eventId, session }) => ({
    event_id: eventId,
    event_type: eventTypeOf[action],
    occurred_at: at,
    user_id: user.user_id,
    traceparent: request.traceparent,
    payload: {
      event_id: eventId,
      event_type: eventTypeOf[action],
      occurred_at: at,
      user_id: user.user_id,
      version: user.version,
      session_epoch: user.session_epoch,
      session_id: session?.session_id ?? null,
      actor: request.actor,
      trace_id: request.traceId,
      account_status: user.status,
      roles: user.roles,
    },
  }));
  const events = sql`select event_id, event_type, user_id as aggregate_key, payload, traceparent,
      occurred_at as created_at
    from json_to_recordset(${JSON.stringify(rows)}) as change (
      event_id uuid, event_type text, user_id text, payload jsonb, traceparent text,
      occurred_at timestamptz)`;
  return announce(tx, outbox, events, lease);
}
