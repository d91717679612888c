import { statusOfCode as shared } from "@kenri/shared/http/errors.ts";

// The HTTP status of every error code that this service may answer with.
export const statusOfCode = {
  ...shared,
  ENTITLEMENT_STATE_CONFLICT: 409,
  ENTITLEMENT_LIMIT_REACHED: 409,
  INSUFFICIENT_POINTS: 409,
  POINTS_LIMIT_REACHED: 409,
  RESERVATION_STATE_CONFLICT: 409,
} as const;

export type ErrorCode = keyof typeof statusOfCode;
