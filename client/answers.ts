// Requests and answers of the API, and the errors that the client throws. A test compares these
// types with the types of the service.

export interface EntitlementChange {
  user_id: string;
  stock_keeping_unit: string;
  reason: string;
  purchase_id: string;
}

export interface Entitlement {
  stock_keeping_unit: string;
  status: "ACTIVE" | "REVOKED";
  version: number;
  updated_at: string;
}

export interface ChangedEntitlement extends Entitlement {
  user_id: string;
}

export interface Entitlements {
  user_id: string;
  entitlements: Entitlement[];
}

export type ErrorCode =
  | "BAD_REQUEST"
  | "UNAUTHORIZED"
  | "FORBIDDEN"
  | "NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "REQUEST_TIMEOUT"
  | "IDEMPOTENCY_KEY_CONFLICT"
  | "ENTITLEMENT_STATE_CONFLICT"
  | "ENTITLEMENT_LIMIT_REACHED"
  | "INSUFFICIENT_POINTS"
  | "POINTS_LIMIT_REACHED"
  | "RESERVATION_STATE_CONFLICT"
  | "ENDPOINT_STATE_CONFLICT"
  | "ENDPOINT_LIMIT_REACHED"
  | "ORDER_STATE_CONFLICT"
  | "ADDRESS_BLOCKED"
  | "SENDER_NOT_CONFIGURED"
  | "ROLE_UNKNOWN"
  | "LAST_ADMIN"
  | "PRECONDITION_FAILED"
  | "PAYLOAD_TOO_LARGE"
  | "URI_TOO_LONG"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "TOO_MANY_REQUESTS"
  | "INTERNAL_ERROR"
  | "SERVICE_UNAVAILABLE";

/** What every answer to a request with a key contains. */
export interface Answered {
  /** True if this is the stored answer to an earlier request with the same key. */
  replayed: boolean;
  /** Its event and its notification have the same id. */
  traceId: string;
}

/** The service's answer to a change. */
export interface Change extends Answered {
  entitlement: ChangedEntitlement;
}

/** Every error that this client throws, except the reason of an aborted signal. */
export abstract class KenriError extends Error {}

/**
 * The change was not made. `ENTITLEMENT_STATE_CONFLICT`: the entitlement already has this status.
 * `ENTITLEMENT_LIMIT_REACHED`: the user has the maximum number of entitlements.
 * `INSUFFICIENT_POINTS`: the balance is lower. `POINTS_LIMIT_REACHED`: it would be too high.
 * `RESERVATION_STATE_CONFLICT`: the reservation can no longer be cancelled.
 * `ENDPOINT_STATE_CONFLICT`: the endpoint is in a state in which this is not possible.
 * `ENDPOINT_LIMIT_REACHED`: the caller has the maximum number of endpoints.
 * `ORDER_STATE_CONFLICT`: the order is in a state in which this is not possible.
 * `LAST_ADMIN`: nobody would be left who has the role ADMIN.
 * `IDEMPOTENCY_KEY_CONFLICT`: the key was used for another request, or its answer is no longer
 * stored.
 */
export class Conflict extends KenriError {
  override readonly name = "Conflict";
  readonly code: ErrorCode;
  /** True if this is the stored answer to an earlier request with the same key. */
  readonly replayed: boolean;

  constructor(code: ErrorCode, message: string, replayed: boolean) {
    super(message);
    this.code = code;
    this.replayed = replayed;
  }
}

/** The request is invalid, and repeating it does not help. Nothing was changed. */
export class Refused extends KenriError {
  override readonly name = "Refused";
  /** Undefined if the answer did not come from Kenri, but for example from a proxy. */
  readonly code: ErrorCode | undefined;
  readonly status: number;

  constructor(code: ErrorCode | undefined, message: string, status: number) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/**
 * No answer before the deadline. Whether the change was made is unknown. Call again with the same
 * key within 24 hours: this makes the change, or returns the answer if it was made. `cause` is the
 * error of the last attempt.
 */
export class Unavailable extends KenriError {
  override readonly name = "Unavailable";
  readonly attempts: number;

  constructor(attempts: number, cause: unknown) {
    super(`no answer after ${attempts} attempts: ${cause}`, { cause });
    this.attempts = attempts;
  }
}
