import { aggregateKeyOf } from "@kenri/proto/aggregate_key";
import type { NewLease } from "@kenri/shared/handover";
import {
  leaseColumns,
  leasedRow,
  leaseOfNew,
  leaseValues,
  type ReturnedRow,
} from "@kenri/shared/leases";
import { query, type Transaction } from "@kenri/shared/postgres";
import { auditHash } from "./audit_hash.ts";
import type { Commit, Stored } from "./decide_change.ts";
import { eventTypeOf, statusAfter } from "./entitlement.ts";
import { outbox, type OutboxContent, type OutboxRow } from "./outbox.ts";

// The entitlement, its event and its audit entry in one statement: they tell the same, so what they
// tell travels once. Returns the events that were written as leased.
export async function storeChanges(
  tx: Transaction,
  commits: Commit[],
  lease: NewLease | undefined,
): Promise<OutboxRow[]> {
  const rows = commits.map(({ request, at, eventId, version, previousHash, previousAt }) => ({
    user_id: request.userId,
    stock_keeping_unit: request.stockKeepingUnit,
    action: request.action,
    status: statusAfter[request.action],
    source: request.reason,
    source_id: request.purchaseId,
    version,
    at,
    request_id: request.idempotencyKey,
    caller: request.caller,
    salt: crypto.randomUUID(),
    previous_hash: previousHash,
    previous_at: previousAt,
    event_id: eventId,
    event_type: eventTypeOf[request.action],
    aggregate_key: aggregateKeyOf(request.userId, request.stockKeepingUnit),
    trace_id: request.traceId,
    traceparent: request.traceparent,
  }));
  const leased = await query<ReturnedRow & OutboxContent>(
    tx,
    `with change as materialized (
       select *, ${auditHash("entry")} as hash
       from (
         select *, event_id as audit_id, at::timestamptz as occurred_at,
           jsonb_build_object('version', version, 'trace_id', trace_id) as detail
         from json_to_recordset($1) as change (
           user_id text, stock_keeping_unit text, action text, status text, source text,
           source_id text, version bigint, at text, request_id text, caller text, salt uuid,
           previous_hash bytea, previous_at timestamptz, event_id uuid, event_type text,
           aggregate_key text, trace_id text, traceparent text)
         offset 0 -- so that none of this is worked out twice
       ) as entry
     ), stored as (
       insert into entitlements as entitlement
         (user_id, stock_keeping_unit, status, granted_at, revoked_at, source, source_id,
          version, updated_at, last_hash, hashed_at)
       select user_id, stock_keeping_unit, status,
         case status when 'ACTIVE' then occurred_at end,
         case status when 'REVOKED' then occurred_at end,
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
     ), announced as (
       insert into outbox_events
         (event_id, event_type, aggregate_key, payload, traceparent, created_at, ${leaseColumns})
       select event_id, event_type, aggregate_key,
         jsonb_build_object(
           'event_id', event_id, 'event_type', event_type, 'occurred_at', at,
           'user_id', user_id, 'stock_keeping_unit', stock_keeping_unit,
           'source', source, 'source_id', source_id,
           'version', version, 'trace_id', trace_id),
         traceparent, occurred_at, ${leaseValues}
       from change
       ${
      leaseOfNew(outbox, { key: "change.aggregate_key", position: "occurred_at" }, [
        "$2",
        "$3",
        "$4",
      ])
    }
       returning *
     ), audited as (
       insert into entitlement_audit
         (audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id, request_id,
          caller, detail, salt, previous_hash, previous_at, hash)
       select audit_id, occurred_at, user_id, stock_keeping_unit, action, source, source_id,
         request_id, caller, detail, salt, previous_hash, previous_at, hash
       from change
     )
     select ${outbox.id} as id, aggregate_key, ${outbox.columns}
     from announced
     where claim_token is not null`,
    [JSON.stringify(rows), lease?.worker, lease?.leaseMs, lease?.token],
  );
  return leased.map((row) => leasedRow<OutboxContent>(row, lease?.token ?? ""));
}

// Only an expired answer may be overwritten. Any other was seen by findSituations under the lock,
// so a row that can't be saved means that the locks failed us: nothing is committed.
export async function storeAnswers(
  tx: Transaction,
  stored: Stored[],
  ttlMs: number,
): Promise<void> {
  const rows = stored.map(({ request, answer }) => ({
    idem_key: request.storedKey,
    request_hash: request.hash,
    response_code: answer.status,
    response_body: answer.body,
  }));
  const saved = await query(
    tx,
    `insert into idempotency_keys as stored
       (idem_key, request_hash, response_code, response_body, created_at, expires_at)
     select idem_key, request_hash, response_code, response_body, now(),
       now() + make_interval(secs => $2::float8 / 1000)
     from json_to_recordset($1) as (
       idem_key text, request_hash text, response_code smallint, response_body text)
     on conflict (idem_key) do update set
       request_hash = excluded.request_hash,
       response_code = excluded.response_code,
       response_body = excluded.response_body,
       created_at = excluded.created_at,
       expires_at = excluded.expires_at
     where stored.expires_at <= now()
     returning 1`,
    [JSON.stringify(rows), ttlMs],
  );
  if (saved.length !== rows.length) throw new Error("An answer was stored under a locked key");
}
