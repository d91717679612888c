import { type ApiError, apiErrors, statusOfCode as shared } from "@kenri/shared/http/errors.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";

// The HTTP status of every error code that this service may answer with.
export const statusOfCode = {
  ...shared,
  ADDRESS_BLOCKED: 400,
  ENDPOINT_LIMIT_REACHED: 409,
  ENDPOINT_STATE_CONFLICT: 409,
  ORDER_STATE_CONFLICT: 409,
  SENDER_NOT_CONFIGURED: 503,
} as const;

export type ErrorCode = keyof typeof statusOfCode;

export const apiError = apiErrors(statusOfCode);

// Only an operator can change this, so it is not worth trying again soon.
const retryAfterSeconds = 60;

const noSender = "this service has no sender, so it can't send orders";

export const senderNotConfigured = (): ApiError =>
  apiError("SENDER_NOT_CONFIGURED", noSender, { "Retry-After": `${retryAfterSeconds}` });

// How a route that needs a sender describes its 503.
export const withoutSender = errorAnswer<ErrorCode>(
  "A dependency is unavailable, too many requests are waiting, or the service has no sender",
  {
    SERVICE_UNAVAILABLE: "the database can't be reached, try again",
    SENDER_NOT_CONFIGURED: noSender,
  },
);
