import { type ErasedRows, type Erasure, recordErasure } from "@kenri/shared/operators/erasure.ts";
import { listOf } from "@kenri/shared/postgres/sql.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";

// Erases a user from audit rows and from what these lead to: events, stored answers and findings of
// the reconciliation. Only a function of the database's owner can change the audit, see migration
// 0008.

export interface AuditedRow {
  audit_id: string;
  occurred_at: string;
}

export async function eraseRows(
  tx: Transaction,
  erasure: Erasure,
  found: AuditedRow[],
): Promise<ErasedRows> {
  if (found.length === 0) return {};
  if (erasure.dryRun) return { entitlement_audit: found.length };
  const ids = listOf(found.map(({ audit_id }) => audit_id));
  const times = found.map(({ occurred_at }) => occurred_at);
  await recordErasure(tx, erasure, { audit_rows: found.length });
  return {
    // First, because the answers are found by the audit.
    idempotency_keys: await eraseAnswers(tx, erasure, ids, times),
    outbox_events: await eraseEvents(tx, erasure, ids),
    unreceived_events: await eraseUnreceived(tx, erasure, ids),
    entitlement_audit: await eraseAudited(tx, erasure, ids, times),
  };
}

// The key stays until it expires, with another hash. So a repeated request is refused as a
// conflict, and does not bring the user back.
function eraseAnswers(
  tx: Transaction,
  { userId, pseudonym }: Erasure,
  ids: string,
  times: string[],
): Promise<number> {
  return countChanged(
    tx,
    `update idempotency_keys stored
     set request_hash = 'erased', response_body = case
       when audit.action in ('GRANT', 'REVOKE')
         then jsonb_set(response_body::jsonb, '{user_id}', to_jsonb($4::text))
       else response_body::jsonb #- '{transaction,source_id}' end::text
     from unnest($1::uuid[], $2::timestamptz[]) as wanted (audit_id, occurred_at)
     join entitlement_audit audit using (audit_id, occurred_at)
     where stored.idem_key =
         case when audit.caller <> '' then audit.caller || ' ' else '' end || audit.request_id
       and (stored.response_body::jsonb->>'user_id' = $3
         or stored.response_body::jsonb->'transaction'->>'transaction_id' = audit.audit_id::text)
     returning 1`,
    [ids, times, userId, pseudonym],
  );
}

function eraseEvents(tx: Transaction, { pseudonym }: Erasure, ids: string): Promise<number> {
  return countChanged(
    tx,
    `update outbox_events
     set aggregate_key = case when payload ? 'unit'
         then points_key_of($2, payload->>'unit')
         else aggregate_key_of($2, coalesce(payload->>'stock_keeping_unit', '')) end,
       payload = payload || jsonb_build_object('user_id', $2::text, 'source_id', 'erased')
     where event_id = any($1::uuid[])
     returning 1`,
    [ids, pseudonym],
  );
}

function eraseUnreceived(tx: Transaction, { pseudonym }: Erasure, ids: string): Promise<number> {
  return countChanged(
    tx,
    `update unreceived_events set user_id = $2 where event_id = any($1::uuid[]) returning 1`,
    [ids, pseudonym],
  );
}

async function countChanged(tx: Transaction, statement: string, values: unknown[]) {
  return (await query(tx, statement, values)).length;
}

async function eraseAudited(
  tx: Transaction,
  { userId, operationId }: Erasure,
  ids: string,
  times: string[],
): Promise<number> {
  const [row] = await query<{ erased: number }>(
    tx,
    `select erase_audited($1, $2, $3, $4) as erased`,
    [operationId, userId, ids, times],
  );
  if (row?.erased !== times.length) throw new Error("Only some of the audit rows could be erased");
  return row.erased;
}

export async function eraseEntitlements(tx: Transaction, erasure: Erasure): Promise<number> {
  await recordErasure(tx, erasure, { audit_rows: 0 }); // unless the audit rows were recorded above
  const [erased] = await query<{ rows: number }>(
    tx,
    "select erase_entitlements($1, $2) as rows",
    [erasure.operationId, erasure.userId],
  );
  return erased?.rows ?? 0;
}

export async function erasePoints(tx: Transaction, erasure: Erasure): Promise<ErasedRows> {
  await recordErasure(tx, erasure, { audit_rows: 0 });
  await eraseAcceptances(tx, erasure);
  const [erased] = await query<{ rows: ErasedRows }>(
    tx,
    "select erase_points($1, $2) as rows",
    [erasure.operationId, erasure.userId],
  );
  return erased?.rows ?? {};
}

// The answers with which reservations were accepted.
async function eraseAcceptances(
  tx: Transaction,
  { userId, pseudonym }: Erasure,
): Promise<void> {
  await query(
    tx,
    `update idempotency_keys stored
     set request_hash = 'erased',
       response_body = (jsonb_set(response_body::jsonb, '{user_id}', to_jsonb($2::text))
         - 'purchase_id')::text
     from point_reservations reservation
     where reservation.user_id = $1
       and stored.idem_key = case when reservation.caller <> '' then reservation.caller || ' ' else '' end
         || reservation.idempotency_key
       and stored.response_body::jsonb->>'reservation_id' = reservation.id::text`,
    [userId, pseudonym],
  );
}
