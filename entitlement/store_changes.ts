import { aggregateKeyOf } from "@kenri/proto/entitlement/aggregate_key.ts";
import type { NewLease } from "@kenri/shared/queue/handover.ts";
import { leasedRow, type ReturnedRow } from "@kenri/shared/queue/leased_row.ts";
import { leaseColumns, leasedColumns, leaseValues } from "@kenri/shared/queue/new_lease.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { Commit } from "./decide_change.ts";
import { eventTypeOf } from "./entitlement.ts";
import { outbox, type OutboxContent, type OutboxRow } from "./outbox.ts";

// Writes the entitlements and their audit rows, through a function that belongs to the owner of the
// database: the service itself may write neither table. The function computes version, link and
// hash, and refuses a change that does not follow the one before.
export async function appendChanges(tx: Transaction, commits: Commit[]): Promise<void> {
  const changes = commits.map(({ request, at, eventId, version }) => ({
    audit_id: eventId,
    occurred_at: at,
    user_id: request.userId,
    stock_keeping_unit: request.stockKeepingUnit,
    action: request.action,
    source: request.reason,
    source_id: request.purchaseId,
    request_id: request.idempotencyKey,
    caller: request.caller,
    version,
    trace_id: request.traceId,
  }));
  await query(tx, "select append_changes($1)", [JSON.stringify(changes)]);
}

// Writes the events to the outbox. Returns those that were written as leased.
export async function storeEvents(
  tx: Transaction,
  commits: Commit[],
  lease: NewLease | undefined,
): Promise<OutboxRow[]> {
  const rows = commits.map(({ request, at, eventId, version }) => ({
    event_id: eventId,
    event_type: eventTypeOf[request.action],
    aggregate_key: aggregateKeyOf(request.userId, request.stockKeepingUnit),
    at,
    user_id: request.userId,
    stock_keeping_unit: request.stockKeepingUnit,
    source: request.reason,
    source_id: request.purchaseId,
    version,
    trace_id: request.traceId,
    traceparent: request.traceparent,
  }));
  const position = sql`occurred_at`;
  const leased = await query<ReturnedRow & OutboxContent>(
    tx,
    sql`with inserted as (
  insert into outbox_events
    (event_id, event_type, aggregate_key, payload, traceparent, created_at, ${leaseColumns})
  select event_id, event_type, aggregate_key,
    jsonb_build_object(
      'event_id', event_id, 'event_type', event_type, 'occurred_at', at,
      'user_id', user_id, 'stock_keeping_unit', stock_keeping_unit,
      'source', source, 'source_id', source_id,
      'version', version, 'trace_id', trace_id),
    traceparent, occurred_at, ${leaseValues}
  from (
    select *, at::timestamptz as occurred_at
    from json_to_recordset(${JSON.stringify(rows)}) as change (
      event_id uuid, event_type text, aggregate_key text, at text, user_id text,
      stock_keeping_unit text, source text, source_id text, version bigint, trace_id text,
      traceparent text)
    offset 0 -- so that the time is parsed once
  ) as change
  ${outbox.newLease({ key: sql`change.aggregate_key`, position }, lease)}
  returning *
)
select ${leasedColumns(outbox.description)}
from inserted
where claim_token is not null`,
  );
  return leased.map((row) => leasedRow<OutboxContent>(row, lease?.token ?? ""));
}
