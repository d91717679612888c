import { maxPerCheck } from "@kenri/proto/notification/receipts.ts";
import { type Database, query, type Transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { allHeads, isOfHead } from "../audit/heads.ts";
import type { AskReceiver } from "../reconciliation/ask.ts";
import type { AuditedRow } from "./erase_rows.ts";

// Finds what would bring the id of an erased user back: events that were not received yet, and
// reservations that are being carried out.

// The audit rows that the chains of the user's entitlements and balances lead to.
export const chainedOfUser = `with recursive chain as (
       select entry.audit_id, entry.occurred_at, entry.previous_at, head.kind, head.user_id,
         head.stock_keeping_unit
       from (${allHeads}) as head
       join entitlement_audit entry
         on entry.occurred_at = head.hashed_at
         and ${isOfHead("entry", "head")}
       where head.user_id = $1
       union
       select entry.audit_id, entry.occurred_at, entry.previous_at, chain.kind, chain.user_id,
         chain.stock_keeping_unit
       from chain
       join entitlement_audit entry
         on entry.occurred_at = chain.previous_at
         and ${isOfHead("entry", "chain")}
     )`;

export interface Publishable extends AuditedRow {
  is_in_outbox: boolean;
}

// All events that are not dead letters. Those of the outbox come first, because countUnreceived may
// stop at older ones.
export function findPublishable(
  on: Database | Transaction,
  userId: string,
): Promise<Publishable[]> {
  return query<Publishable & Record<string, unknown>>(
    on,
    `${chainedOfUser}
     select audit_id, ${utc("occurred_at")} as occurred_at, event_id is not null as is_in_outbox
     from chain
     left join outbox_events on event_id = audit_id
     where status is distinct from 'FAILED'
     order by is_in_outbox desc, chain.occurred_at desc`,
    [userId],
  );
}

// The stream counts an event's age from its publication, which the outbox remembers only for a
// while. So an event counts as on its way until it is received, for as long as the receiver
// remembers what it received.
export async function countUnreceived(ask: AskReceiver, rows: Publishable[]): Promise<number> {
  let unreceived = 0;
  for (let i = 0; i < rows.length; i += maxPerCheck) {
    const page = rows.slice(i, i + maxPerCheck);
    const receipt = await ask(page.map(({ audit_id }) => audit_id));
    const missing = new Set(receipt.missing);
    const isRemembered = (row: Publishable) =>
      row.is_in_outbox || row.occurred_at >= receipt.remembered_since;
    unreceived += page.filter((row) => missing.has(row.audit_id) && isRemembered(row)).length;
    if (!page.some(isRemembered)) break;
  }
  return unreceived;
}

// Changes of the user wait for this answer, so it must not take long.
const answerUnderLocksMs = 1_000;

// Asks about the events that were committed and published after the first question and before the
// locks.
export async function countUnreceivedSince(
  tx: Transaction,
  ask: AskReceiver,
  userId: string,
  known: Set<string>,
): Promise<number> {
  const added = (await findPublishable(tx, userId)).filter(({ audit_id }) => !known.has(audit_id));
  if (added.length > maxPerCheck) return added.length;
  return await countUnreceived((ids) => ask(ids, answerUnderLocksMs), added);
}

// Whatever republishes one of these events waits for this lock, and then publishes it without the
// user. Rows are locked in the order of their ids, as wherever events are republished. The
// relay holds only unfinished rows.
export async function lockFinished(tx: Transaction, userId: string): Promise<void> {
  await query(
    tx,
    `${chainedOfUser}
     select
     from outbox_events row
     where row.event_id in (select audit_id from chain)
       and not row.unfinished
     order by row.event_id
     for update of row`,
    [userId],
  );
}

export async function countUnpublished(tx: Transaction, userId: string): Promise<number> {
  const rows = await query(
    tx,
    `select
     from (${allHeads}) as head
     join outbox_events row
       on row.unfinished::int = 1
       and row.aggregate_key = head.aggregate_key
     where head.user_id = $1`,
    [userId],
  );
  return rows.length;
}

// No worker can claim one of the user's reservations until the transaction ends. Returns how many
// are being carried out.
export async function lockReservations(tx: Transaction, userId: string): Promise<number> {
  const rows = await query<{ status: string }>(
    tx,
    `select status
     from point_reservations
     where user_id = $1
     order by id
     for update`,
    [userId],
  );
  return rows.filter(({ status }) => status === "PROCESSING").length;
}
