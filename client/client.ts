/**
 * The Kenri client for TypeScript: entitlements, points, reservations, orders, webhooks and accounts
 * from Deno, Node 20 and newer, and browsers. It needs only the `fetch` of the platform.
 *
 * ```ts
 * import { kenriClient } from "@kenri/client";
 *
 * const kenri = kenriClient("http://127.0.0.1:8080");
 * const { entitlement, replayed } = await kenri.grant("purchase-1", {
 *   user_id: "ann",
 *   stock_keeping_unit: "book",
 *   reason: "purchase",
 *   purchase_id: "purchase-1",
 * });
 * ```
 *
 * @module
 */
import {
  type AccountAudit,
  type AccountAuditEntry,
  type AccountsClient,
  accountsClient,
  type ProfileChange,
  type Role,
  type User,
} from "./accounts.ts";
import {
  type Answered,
  type Change,
  type ChangedEntitlement,
  Conflict,
  type Entitlement,
  type EntitlementChange,
  type Entitlements,
  type ErrorCode,
  KenriError,
  Refused,
  Unavailable,
} from "./answers.ts";
import type { Fetch, Patience } from "./attempts.ts";
import {
  type CreatedEndpoint,
  type Endpoint,
  type EndpointAttempt,
  type EndpointAttempts,
  type EndpointChange,
  type Endpoints,
  type EndpointsClient,
  endpointsClient,
  type EndpointState,
  type EndpointTest,
  type NewEndpoint,
  type NewReplay,
  type Replayed,
  type RotatedSecret,
} from "./endpoints.ts";
import {
  type AcceptedOrder,
  type Json,
  type LedgerEntry,
  type NewOrder,
  type Order,
  type OrdersClient,
  ordersClient,
  type OrderStatus,
} from "./orders.ts";
import {
  type ChangedPoints,
  type PointsBalance,
  type PointsBalances,
  type PointsChange,
  type PointsClient,
  pointsClient,
  type PointsTransaction,
  type PointsTransactions,
} from "./points.ts";
import {
  type CallOptions,
  type ClientOptions,
  type PageOptions,
  requestsTo,
  type Token,
} from "./requests.ts";
import {
  type ChangeReservation,
  type NewChangeReservation,
  type NewPointsReservation,
  type PointsReservation,
  type PointsReservations,
  type ReservationsClient,
  reservationsClient,
  type ReservationStatus,
  type Reserved,
} from "./reservations.ts";

export { Conflict, KenriError, Refused, Unavailable };
export type {
  AcceptedOrder,
  AccountAudit,
  AccountAuditEntry,
  AccountsClient,
  Answered,
  CallOptions,
  Change,
  ChangedEntitlement,
  ChangedPoints,
  ChangeReservation,
  ClientOptions,
  CreatedEndpoint,
  Endpoint,
  EndpointAttempt,
  EndpointAttempts,
  EndpointChange,
  Endpoints,
  EndpointsClient,
  EndpointState,
  EndpointTest,
  Entitlement,
  EntitlementChange,
  Entitlements,
  ErrorCode,
  Fetch,
  Json,
  LedgerEntry,
  NewChangeReservation,
  NewEndpoint,
  NewOrder,
  NewPointsReservation,
  NewReplay,
  Order,
  OrdersClient,
  OrderStatus,
  PageOptions,
  Patience,
  PointsBalance,
  PointsBalances,
  PointsChange,
  PointsClient,
  PointsReservation,
  PointsReservations,
  PointsTransaction,
  PointsTransactions,
  ProfileChange,
  Replayed,
  ReservationsClient,
  ReservationStatus,
  Reserved,
  Role,
  RotatedSecret,
  Token,
  User,
};

export interface KenriClient extends PointsClient, ReservationsClient {
  /**
   * Grants the entitlement. The idempotency key identifies the intent, for example one purchase.
   * Keep it: with the same key the call may be repeated after any failure, also by another process,
   * and the change is made only once.
   */
  grant(key: string, change: EntitlementChange, options?: CallOptions): Promise<Change>;
  /** Revokes the entitlement, also before it was granted: a refund may overtake its purchase. */
  revoke(key: string, change: EntitlementChange, options?: CallOptions): Promise<Change>;
  /** All entitlements of the user, active and revoked, the latest change first. */
  list(userId: string, options?: CallOptions): Promise<Entitlements>;
}

export function kenriClient(url: string | URL, options: ClientOptions = {}): KenriClient {
  const requests = requestsTo(url, options);
  const change = async (
    path: string,
    key: string,
    fields: EntitlementChange,
    call: CallOptions | undefined,
  ): Promise<Change> => {
    const { body, ...answered } = await requests.post<ChangedEntitlement>(path, key, fields, call);
    return { entitlement: body, ...answered };
  };
  return {
    grant: (key, fields, call) => change("/v1/entitlements/grants", key, fields, call),
    revoke: (key, fields, call) => change("/v1/entitlements/revokes", key, fields, call),
    list: (userId, call) =>
      requests.get(`/v1/users/${encodeURIComponent(userId)}/entitlements`, call),
    ...pointsClient(requests),
    ...reservationsClient(requests),
  };
}

export interface NotificationClient extends OrdersClient, EndpointsClient {}

/** Orders and webhooks, which the service `notification` has at a url of its own. */
export function notificationClient(
  url: string | URL,
  options: ClientOptions = {},
): NotificationClient {
  const requests = requestsTo(url, options);
  return { ...ordersClient(requests), ...endpointsClient(requests) };
}

/** Accounts of users, which the service `account` has at a url of its own. */
export function accountClient(url: string | URL, options: ClientOptions = {}): AccountsClient {
  return accountsClient(requestsTo(url, options));
}
