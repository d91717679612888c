import type { Answer } from "@kenri/shared/commands/answer.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { LeasedRow } from "@kenri/shared/queue/leased_row.ts";
import { byDueTime, leasedTable } from "@kenri/shared/queue/leased_table.ts";

// The table of reservations. The states of its rows and every move between them:
//   PENDING → PROCESSING     claimed, when due
//   PROCESSING → PROCESSING  claimed again, because the lease ran out
//   PROCESSING → DONE        carried out, in the commit of its effects
//   PROCESSING → PENDING     failed and to be retried, or released
//   PROCESSING → FAILED      failed for good: a dead letter
//   PENDING → CANCELLED      by its caller, or because its user was erased
//   FAILED → PENDING         sent back by an operator

export interface ReservationContent {
  kind: "POINTS" | "GRANT" | "REVOKE";
  caller: string;
  user_id: string;
  unit: string | null;
  point_amount: number | null;
  stock_keeping_unit: string | null;
  source: string | null;
  source_id: string | null;
  trace_id: string;
  traceparent: string | null;
  late_seconds: number; // at the time of the claim
}

export type ReservationRow = LeasedRow<ReservationContent>;

// Points have a transaction, rights have the answer to their change.
export interface CarriedOut {
  transactionId?: string;
  outcome?: { status: number; body: unknown };
}

export const reservations = leasedTable<ReservationContent, CarriedOut>({
  name: "point_reservations",
  id: "id",
  attempts: "reservation_attempts",
  working: "PROCESSING",
  order: byDueTime("due_at", "position"),
  content: sql`kind, caller, user_id, unit, point_amount, stock_keeping_unit, source, source_id,
    trace_id, traceparent,
    extract(epoch from locked_at - greatest(execute_at, created_at))::float8 as late_seconds`,
  claimSets: sql`updated_at = now()`,
  done: {
    status: "DONE",
    set: sql`transaction_id = settled.transaction_id,
    outcome = settled.outcome::json,
    updated_at = now(),
    done_at = now()`,
    values: {
      transaction_id: { type: "uuid", of: (_, { transactionId }) => transactionId ?? null },
      outcome: {
        type: "text",
        of: (_, { outcome }) => outcome ? JSON.stringify(outcome) : null,
      },
    },
  },
});

// Nobody sees this answer but the worker, whose reservation another one has taken over.
export const leaseLost: Answer = { status: 409, body: "", outcome: "state_conflict" };

// Locks due reservations for the commit of their effects. Returns the ids of those that are still
// leased to this worker.
export async function lockLeased(
  tx: Transaction,
  rows: (ReservationRow | undefined)[],
): Promise<Set<string>> {
  const due = rows.filter((row) => row !== undefined);
  if (due.length === 0) return new Set();
  const found = await query<{ id: string }>(
    tx,
    sql`
    select id
    from point_reservations
    where (id, claim_token) in (
      select * from unnest(
        ${due.map(({ id }) => id)}::uuid[],
        ${due.map(({ token }) => token)}::uuid[]))
    order by id
    for update`,
  );
  return new Set(found.map(({ id }) => id));
}

// In the commit of the effects. They were locked while they were leased, so all of them are.
export async function markCarriedOut(
  tx: Transaction,
  done: { row: ReservationRow; result: CarriedOut }[],
): Promise<void> {
  await reservations.markDone(tx, done, "A reservation was not leased any more");
}
