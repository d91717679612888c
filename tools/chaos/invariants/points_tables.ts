// The parts of the tables of points and reservations that the invariants compare. Times are in
// microseconds since 1970, and a balance is an item like an entitlement, named as in the audit.
import { ask } from "../../servers/asking.ts";

export interface PointsTables {
  balances: { user_id: string; stock_keeping_unit: string; balance: number; version: number }[];
  transactions: {
    id: string;
    idempotency_key: string;
    user_id: string;
    stock_keeping_unit: string;
    point_amount: number;
    balance_after: number;
    version: number;
    reservation_id: string | null;
    created_at: number;
  }[];
  reservations: {
    id: string;
    kind: "POINTS" | "GRANT" | "REVOKE";
    idempotency_key: string;
    user_id: string;
    stock_keeping_unit: string;
    point_amount: number | null;
    execute_at: number;
    status: string;
    transaction_id: string | null;
    answered: number | null; // the status of its outcome
    leased: boolean;
    failures: number; // attempts other than leases that ran out
  }[];
}

const item = "coalesce(stock_keeping_unit, 'points:' || unit) as stock_keeping_unit";
const ofPoints = "'points:' || unit as stock_keeping_unit";

export const leased = "num_nulls(locked_by, locked_at, lease_until, claim_token) < 4 as leased";

export function microseconds(column: string): string {
  return `(extract(epoch from ${column}) * 1000000)::float8 as ${column}`;
}

export async function readPointsTables(url: string): Promise<PointsTables> {
  const [balances, transactions, reservations] = await Promise.all([
    ask<PointsTables["balances"][0]>(
      url,
      `select user_id, ${ofPoints}, balance::float8, version::int from point_root`,
    ),
    ask<PointsTables["transactions"][0]>(
      url,
      `select id, idempotency_key, user_id, ${ofPoints}, point_amount::float8,
         balance_after::float8, version::int, reservation_id, ${microseconds("created_at")}
       from point_transactions`,
    ),
    ask<PointsTables["reservations"][0]>(
      url,
      `select id, kind, idempotency_key, user_id, ${item}, point_amount::float8,
         ${microseconds("execute_at")}, status, transaction_id,
         (outcome->>'status')::int as answered, ${leased},
         (select count(*)::int
          from reservation_attempts attempt
          where attempt.id = reservation.id
            and attempt.outcome <> 'TAKEN_OVER') as failures
       from point_reservations reservation`,
    ),
  ]);
  return { balances, transactions, reservations };
}
