import { pointsKeyOf } from "@kenri/proto/points/aggregate_key.ts";
import { announce } from "@kenri/shared/outbox/announce.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { query, type Transaction as DatabaseTransaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { storedKeyOf } from "@kenri/shared/commands/stored_answers.ts";
import type { NewLease } from "@kenri/shared/queue/handover.ts";
import { outbox } from "../outbox.ts";
import { eventTypeOf, type Transaction } from "./points.ts";

// Writes transactions, balances and audit rows, through a function that belongs to the owner of the
// database: the service itself may write none of them.
export async function appendPoints(
  tx: DatabaseTransaction,
  transactions: Transaction[],
): Promise<void> {
  await query(tx, sql`select append_points(${JSON.stringify(transactions.map(rowOf))})`);
}

// Returns the events that were written as leased.
export function storePointsEvents(
  tx: DatabaseTransaction,
  transactions: Transaction[],
  lease: NewLease | undefined,
): Promise<OutboxRow[]> {
  return announcePoints(tx, transactions.map(rowOf), lease);
}

type AnnouncedPoints = Omit<ReturnType<typeof rowOf>, "idempotency_key" | "request_id" | "caller">;

export async function announcePoints(
  tx: DatabaseTransaction,
  rows: AnnouncedPoints[],
  lease?: NewLease,
): Promise<OutboxRow[]> {
  const events = sql`select id as event_id, event_type, aggregate_key,
      jsonb_build_object(
        'event_id', id, 'event_type', event_type, 'occurred_at', created_at,
        'user_id', user_id, 'unit', unit, 'point_amount', point_amount, 'balance', balance,
        'version', version, 'source', source, 'source_id', source_id,
        'transaction_id', id, 'reservation_id', reservation_id, 'trace_id', trace_id) as payload,
      traceparent, created_at::timestamptz as created_at
    from json_to_recordset(${JSON.stringify(rows)}) as entry (
      id uuid, event_type text, aggregate_key text, user_id text, unit text, point_amount bigint,
      balance bigint, version bigint, source text, source_id text, reservation_id uuid,
      trace_id text, traceparent text, created_at text)`;
  return await announce(tx, outbox, events, lease);
}

// What both statements read. The transaction, its event and its audit row have one id.
function rowOf({ change, id, at, amount, balance, version }: Transaction) {
  return {
    id,
    event_type: eventTypeOf[change.kind],
    aggregate_key: pointsKeyOf(change.userId, change.unit),
    idempotency_key: storedKeyOf(change),
    request_id: change.idempotencyKey,
    caller: change.caller,
    user_id: change.userId,
    unit: change.unit,
    point_amount: amount,
    balance,
    version,
    source: change.source,
    source_id: change.sourceId,
    reservation_id: change.reservation?.id ?? null,
    trace_id: change.traceId,
    traceparent: change.traceparent,
    created_at: at,
  };
}
