import { apiErrors, statusOfCode as shared } from "@kenri/shared/http/errors.ts";

// The HTTP status of every error code that this service may answer with.
export const statusOfCode = {
  ...shared,
  ROLE_UNKNOWN: 400,
  LAST_ADMIN: 409,
  PRECONDITION_FAILED: 412,
} as const;

export type ErrorCode = keyof typeof statusOfCode;

export const apiError = apiErrors(statusOfCode);

export const userNotFound = "user not found";
