import { aggregateKeyOf } from "@kenri/proto/entitlement/aggregate_key.ts";
import type { EventFields } from "@kenri/proto/entitlement/decode.ts";
import type { NewLease } from "@kenri/shared/queue/handover.ts";
import { announce } from "@kenri/shared/outbox/announce.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { AnswerToStore, Commit } from "./decide_change.ts";
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

// Only an expired answer may be overwritten. findCurrentStates has seen every other one under the
// lock, so if a row can't be written, the lock did not hold and nothing may be committed.
export async function storeAnswers(
  tx: Transaction,
  answers: AnswerToStore[],
  ttlMs: number,
): Promise<void> {
  const rows = answers.map(({ request, answer }) => ({
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
  if (saved.length !== rows.length) {
    throw new Error("Another answer was stored under a key that was locked");
  }
}
