import { ApiError, statusOfCode as shared } from "@kenri/shared/http/errors.ts";

// The HTTP status of every error code that this service may answer with.
export const statusOfCode = {
  ...shared,
  ROLE_UNKNOWN: 400,
  LAST_ADMIN: 409,
  PRECONDITION_FAILED: 412,
} as const;

export type ErrorCode = keyof typeof statusOfCode;

export function apiError(code: ErrorCode, message: string): ApiError {
  return new ApiError({ code, status: statusOfCode[code] }, message);
}

export const userNotFound = "user not found";
