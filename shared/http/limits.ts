import type { Counter } from "prom-client";
import { counter, countersBy, fromZero } from "../telemetry/metrics.ts";
import { type ApiError, unavailable } from "./errors.ts";

// The limits on requests, and how often each refused one. docs/limits.md lists all limits, also
// those of the runtime.

export const limits = [
  ...["url_size", "body_size", "body_time", "requests_at_once", "strangers_at_once"] as const,
  ...["arrivals_at_once", "per_connection", "waiting", "rate"] as const,
];

export type Limit = typeof limits[number];

const refusals = counter<"limit">("kenri_refused_total", "requests refused because of a limit", [
  "limit",
]);
const refusalsOf = countersBy(limits, (limit) => refusals.labels(limit));

// The refusals of a limit that only one service has.
export function refusalsBy(limit: string): Counter.Internal {
  return fromZero(refusals.labels(limit));
}

export function countRefusal(limit: Limit): void {
  refusalsOf[limit].inc();
}

export function refusedBy(limit: Limit, error: ApiError): ApiError {
  countRefusal(limit);
  return error;
}

export const tooManyWaiting = (): ApiError =>
  refusedBy("waiting", unavailable("too many requests are waiting, try again"));
