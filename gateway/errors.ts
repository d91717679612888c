import { apiErrors, statusOfCode as shared } from "@kenri/shared/http/errors.ts";

// The HTTP status of every error code that the gateway may answer with.

const statusOfFailure = {
  UNAUTHORIZED: 502,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  TIMEOUT: 504,
  INVALID_RESPONSE: 502,
  BAD_GATEWAY: 502,
  UNAVAILABLE: 503,
} as const;

export type Failure = keyof typeof statusOfFailure;

export const dependencies = ["ACCOUNT", "ENTITLEMENT", "MATCHMAKING", "NOTIFICATION"] as const;
export type Dependency = typeof dependencies[number];
export type DependencyCode = `${Dependency}_${Failure}`;

const statusOfDependencyCode = Object.fromEntries(
  dependencies.flatMap((dependency) =>
    Object.entries(statusOfFailure).map(([failure, status]) => [`${dependency}_${failure}`, status])
  ),
) as { [Code in DependencyCode]: typeof statusOfFailure[Failure] };

// A 4xx of a service behind passes with the code of that service.
const statusOfPassedCode = {
  PRECONDITION_FAILED: 412,
  MATCHMAKING_BAD_REQUEST: 400,
  MATCHMAKING_TICKET_NOT_FOUND: 404,
  MATCHMAKING_TICKET_FORBIDDEN: 403,
  MATCHMAKING_ALREADY_QUEUED: 409,
} as const;

export const statusOfCode = {
  ...shared,
  LOGIN_FAILED: 401,
  ACCOUNT_INACTIVE: 403,
  CSRF_REJECTED: 403,
  PROFILE_FORBIDDEN: 403,
  ISSUER_UNAVAILABLE: 503,
  ...statusOfDependencyCode,
  ...statusOfPassedCode,
} as const;

export type ErrorCode = keyof typeof statusOfCode;

export const apiError = apiErrors(statusOfCode);
