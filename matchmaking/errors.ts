import { type ApiError, apiErrors, statusOfCode as shared } from "@kenri/shared/http/errors.ts";

// The HTTP status of every error code that this service may answer with.
export const statusOfCode = {
  ...shared,
  MATCHMAKING_BAD_REQUEST: 400,
  MATCHMAKING_TICKET_FORBIDDEN: 403,
  MATCHMAKING_TICKET_NOT_FOUND: 404,
  MATCHMAKING_ALREADY_QUEUED: 409,
  MATCHMAKING_UNAVAILABLE: 503,
} as const;

export type ErrorCode = keyof typeof statusOfCode;

export const apiError = apiErrors(statusOfCode);

export const badRequest = (message: string): ApiError =>
  apiError("MATCHMAKING_BAD_REQUEST", message);
