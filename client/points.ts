import type { Answered } from "./answers.ts";
import { type CallOptions, type PageOptions, query, type Requests } from "./requests.ts";

// Points of users: balances and their transactions.

export interface PointsChange {
  user_id: string;
  /** A whole number from 1 to 9,007,199,254,740,991; also for a spend. */
  point_amount: number;
  /** By default that of the service's settings. */
  unit?: string | null;
  reason: string;
  source_id: string;
}

export interface PointsTransaction {
  transaction_id: string;
  kind: "GRANT" | "SPEND";
  unit: string;
  /** Negative for a spend. */
  point_amount: number;
  balance_after: number;
  version: number;
  reason: string;
  source_id: string;
  /** Present if a reservation made it. */
  reservation_id?: string;
  created_at: string;
}

export interface PointsBalance {
  unit: string;
  balance: number;
  version: number;
  updated_at: string;
}

export interface PointsBalances {
  user_id: string;
  balances: PointsBalance[];
}

export interface PointsTransactions {
  transactions: PointsTransaction[];
  /** Present if there are more. */
  next_cursor?: string;
}

/** The service's answer to a grant or a spend. */
export interface ChangedPoints extends Answered {
  transaction: PointsTransaction;
  /** After the transaction. */
  balance: number;
}

export interface PointsClient {
  /** Adds points to a balance. The key identifies the intent, as that of `grant` does. */
  grantPoints(key: string, change: PointsChange, options?: CallOptions): Promise<ChangedPoints>;
  /** Takes points. Throws a Conflict `INSUFFICIENT_POINTS` if the balance is lower. */
  spendPoints(key: string, change: PointsChange, options?: CallOptions): Promise<ChangedPoints>;
  /** The balances of the user: one for each unit, or only that of the given unit. */
  listBalances(userId: string, options?: CallOptions & { unit?: string }): Promise<PointsBalances>;
  /** A page of the user's transactions, the newest first. */
  listTransactions(
    userId: string,
    options?: PageOptions & { unit?: string },
  ): Promise<PointsTransactions>;
}

export function pointsClient(requests: Requests): PointsClient {
  const change = async (
    path: string,
    key: string,
    fields: PointsChange,
    call: CallOptions | undefined,
  ): Promise<ChangedPoints> => {
    const { body, ...answered } = await requests.post<Omit<ChangedPoints, keyof Answered>>(
      path,
      key,
      fields,
      call,
    );
    return { ...body, ...answered };
  };
  return {
    grantPoints: (key, fields, call) => change("/v1/points/grants", key, fields, call),
    spendPoints: (key, fields, call) => change("/v1/points/spends", key, fields, call),
    listBalances: (userId, { unit, ...call } = {}) =>
      requests.get(`/v1/users/${encodeURIComponent(userId)}/points${query({ unit })}`, call),
    listTransactions: (userId, { unit, limit, cursor, ...call } = {}) => {
      const path = `/v1/users/${encodeURIComponent(userId)}/points/transactions`;
      return requests.get(path + query({ unit, limit, cursor }), call);
    },
  };
}
