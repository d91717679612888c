import type { Context } from "hono";
import { isNotAdmitted, isUnavailable } from "../postgres/postgres.ts";
import type { Log } from "../process/log.ts";
import { BatchFull } from "../queue/batch.ts";
import { RedisUnavailable } from "../redis/errors.ts";
import { ApiError, unavailable } from "./errors.ts";
import { tooManyWaiting } from "./limits.ts";

// How an error that a handler throws is answered.

// What the log reports about a request that failed, besides its route.
declare module "hono" {
  interface ContextVariableMap {
    about?: Record<string, unknown>;
  }
}

export function answerError(error: ApiError): Response {
  return Response.json(error.body, { status: error.status, headers: error.headers });
}

export function statusOf(error: unknown): number {
  return error instanceof BatchFull ? 503 : knownError(error)?.status ?? 500;
}

// An unknown error is logged, and the caller gets no detail of it.
export function toApiError(error: unknown, { req, get }: Context, log: Log): ApiError {
  if (error instanceof BatchFull) return tooManyWaiting();
  const known = knownError(error);
  if (known) return known;
  log.error("A request failed: {error}", {
    error,
    method: req.method,
    caller: get("caller")?.name || undefined,
    ...get("about"),
  });
  return new ApiError("INTERNAL_ERROR", "the request failed because of an error in the service");
}

function knownError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  if (isUnavailable(error) || isNotAdmitted(error)) {
    return unavailable("the database can't be reached, try again with the same Idempotency-Key");
  }
  if (error instanceof RedisUnavailable) return unavailable("Redis can't be reached, try again");
  return undefined;
}
