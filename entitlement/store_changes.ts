import { aggregateKeyOf } from "@kenri/proto/entitlement/aggregate_key.ts";
import type { EventFields } from "@kenri/proto/entitlement/decode.ts";
import type { NewLease } from "@kenri/shared/queue/handover.ts";
import { announce } from "@kenri/shared/outbox/announce.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { Commit } from "./decide_change.ts";
import { eventTypeOf } from "./entitlement.ts";
import { outbox } from "./outbox.ts";

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

// Returns the events that were written as leased.
export async function storeEvents(
  tx: Transaction,
  commits: Commit[],
  lease: NewLease | undefined,
): Promise<OutboxRow[]> {
  const events = commits.map(({ request, at, eventId, version }) => ({
    fields: {
      event_id: eventId,
      event_type: eventTypeOf[request.action],
      occurred_at: at,
      user_id: request.userId,
      stock_keeping_unit: request.stockKeepingUnit,
      source: request.reason,
      source_id: request.purchaseId,
      version,
      trace_id: request.traceId,
    },
    traceparent: request.traceparent,
  }));
  return await announceChanges(tx, events, lease);
}

export async function announceChanges(
  tx: Transaction,
  changes: { fields: EventFields; traceparent: string | null }[],
  lease?: NewLease,
): Promise<OutboxRow[]> {
  const rows = changes.map(({ fields, traceparent }) => ({
    ...fields,
    aggregate_key: aggregateKeyOf(fields.user_id, fields.stock_keeping_unit),
    traceparent,
  }));
  const events = sql`select event_id, event_type, aggregate_key,
      jsonb_build_object(
        'event_id', event_id, 'event_type', event_type, 'occurred_at', occurred_at,
        'user_id', user_id, 'stock_keeping_unit', stock_keeping_unit,
        'source', source, 'source_id', source_id,
        'version', version, 'trace_id', trace_id) as payload,
      traceparent, occurred_at::timestamptz as created_at
    from json_to_recordset(${JSON.stringify(rows)}) as change (
      event_id uuid, event_type text, aggregate_key text, occurred_at text, user_id text,
      stock_keeping_unit text, source text, source_id text, version bigint, trace_id text,
      traceparent text)`;
  return await announce(tx, outbox, events, lease);
}
