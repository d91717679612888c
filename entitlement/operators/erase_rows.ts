import { type ErasedRows, type Erasure, pseudonymOf } from "@kenri/shared/operators/erasure.ts";
import { listOf } from "@kenri/shared/queue/leases.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";

// Erases a user from audit rows and from what they lead to: events, stored answers, and what the
// reconciliation found. The audit itself is changed by a function of the owner, see migration 0008.

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
  await recordErasure(tx, erasure, found.length);
  return {
    idempotency_keys: await eraseAnswers(tx, erasure, ids, times), // which the audit leads to
    outbox_events: await eraseEvents(tx, erasure, ids),
    unreceived_events: await eraseUnreceived(tx, erasure, ids),
    entitlement_audit: await eraseAudited(tx, erasure, ids, times),
  };
}

// It says that somebody was erased, and not who.
export async function recordErasure(
  tx: Transaction,
  { operationId, who, reason }: Erasure,
  count: number,
): Promise<void> {
  await query(
    tx,
    `insert into operations (operation_id, kind, layer, who, reason, items)
     values ($1, 'ERASE_USER', 'user', $2, $3, jsonb_build_array(
       jsonb_build_object('audit_rows', $4::integer)))
     on conflict (operation_id) do nothing`,
    [operationId, who, reason, count],
  );
}

// The key stays until it expires, with another hash: a request that is repeated is refused as a
// conflict, and does not bring the user back.
async function eraseAnswers(
  tx: Transaction,
  { userId, operationId }: Erasure,
  ids: string,
  times: string[],
): Promise<number> {
  const rows = await query(
    tx,
    `update idempotency_keys stored
     set request_hash = 'erased',
       response_body = jsonb_set(response_body::jsonb, '{user_id}', to_jsonb($4::text))::text
     from unnest($1::uuid[], $2::timestamptz[]) as wanted (audit_id, occurred_at)
     join entitlement_audit audit using (audit_id, occurred_at)
     where stored.idem_key =
         case when audit.caller <> '' then audit.caller || ' ' else '' end || audit.request_id
       and stored.response_body::jsonb->>'user_id' = $3
     returning 1`,
    [ids, times, userId, pseudonymOf(operationId)],
  );
  return rows.length;
}

async function eraseEvents(
  tx: Transaction,
  { operationId }: Erasure,
  ids: string,
): Promise<number> {
  const rows = await query(
    tx,
    `update outbox_events
     set aggregate_key = aggregate_key_of($2, coalesce(payload->>'stock_keeping_unit', '')),
       payload = payload || jsonb_build_object('user_id', $2::text, 'source_id', 'erased')
     where event_id = any($1::uuid[])
     returning 1`,
    [ids, pseudonymOf(operationId)],
  );
  return rows.length;
}

async function eraseUnreceived(
  tx: Transaction,
  { operationId }: Erasure,
  ids: string,
): Promise<number> {
  const rows = await query(
    tx,
    `update unreceived_events set user_id = $2 where event_id = any($1::uuid[]) returning 1`,
    [ids, pseudonymOf(operationId)],
  );
  return rows.length;
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
  if (row?.erased !== times.length) throw new Error("Not all rows of the audit could be erased");
  return row.erased;
}
