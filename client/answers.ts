// What a caller gets from Kenri, in the words of its API: what it asks for, what it is given, and
// what is thrown instead. A test holds these types to those of the service.

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
  | "PAYLOAD_TOO_LARGE"
  | "URI_TOO_LONG"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "TOO_MANY_REQUESTS"
  | "INTERNAL_ERROR"
  | "SERVICE_UNAVAILABLE";

/** The service's answer to a change. */
export interface Change {
  entitlement: ChangedEntitlement;
  /** True when the change was made by an earlier request with the same key. */
  replayed: boolean;
  /** Follows the change to its event and its notification. */
  traceId: string;
}

/** All that this client throws, besides the reason of an aborted signal. */
export abstract class KenriError extends Error {}

/**
 * The change was not made. `ENTITLEMENT_STATE_CONFLICT`: the entitlement is in that state already.
 * `ENTITLEMENT_LIMIT_REACHED`: the user has as many as one may have. `IDEMPOTENCY_KEY_CONFLICT`: the
 * key belongs to another request.
 */
export class Conflict extends KenriError {
  override readonly name = "Conflict";
  readonly code: ErrorCode;
  /** True when an earlier request with the same key was refused like this. */
  readonly replayed: boolean;

  constructor(code: ErrorCode, message: string, replayed: boolean) {
    super(message);
    this.code = code;
    this.replayed = replayed;
  }
}

/** The request is wrong, and stays so however often it is repeated. Nothing was changed. */
export class Refused extends KenriError {
  override readonly name = "Refused";
  /** Absent when the answer is not one of Kenri's, but of something in between. */
  readonly code: ErrorCode | undefined;
  readonly status: number;

  constructor(code: ErrorCode | undefined, message: string, status: number) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/**
 * No answer until the deadline. Whether the change was made is unknown; the same call with the same
 * key, at any time within 24 hours, tells or makes it. `cause` is what the last attempt failed with.
 */
export class Unavailable extends KenriError {
  override readonly name = "Unavailable";
  readonly attempts: number;

  constructor(attempts: number, cause: unknown) {
    super(`no answer after ${attempts} attempts: ${cause}`, { cause });
    this.attempts = attempts;
  }
}
