import {
  counter,
  countersBy,
  delaySeconds,
  histogram,
  shortSeconds,
} from "@kenri/shared/telemetry/metrics.ts";
import { collectedGauge } from "@kenri/shared/telemetry/collected.ts";

const timeToMatch = histogram(
  "mm_time_to_match_seconds",
  "time from the join of a ticket to its match, by the clock of Redis",
  [...shortSeconds, 30, 60, 120, 300],
).labels();

export function observeMatched(waitsMs: number[]): void {
  for (const ms of waitsMs) timeToMatch.observe(ms / 1_000);
  ends.matched.inc(waitsMs.length / 2);
}

const results = ["matched", "expired", "cancelled", "invalid"] as const;
const matches = counter(
  "mm_match_total",
  "matches (`matched`), and tickets that ended without one (`expired`, `cancelled`, `invalid`)",
  ["result"],
);
const ends = countersBy(results, (result) => matches.labels(result));

export function countEnded(result: "expired" | "cancelled" | "invalid", tickets: number): void {
  if (tickets > 0) ends[result].inc(tickets);
}

const dependencies = ["redis", "nats"] as const;
const dependencyErrors = counter(
  "mm_dependency_error_total",
  "requests and rounds that failed because Redis or NATS was unavailable",
  ["type"],
);
const errorsOf = countersBy(dependencies, (type) => dependencyErrors.labels(type));

export function countDependencyError(type: typeof dependencies[number]): void {
  errorsOf[type].inc();
}

export const queueDepth = collectedGauge("mm_queue_depth", "tickets that wait", ["mode"]);
export const oldestAge = collectedGauge(
  "mm_queue_oldest_age_seconds",
  "how long the oldest ticket has waited; 0 if none waits",
  ["mode"],
);
export const eventsWaiting = collectedGauge(
  "mm_events_waiting",
  "events in Redis that are not published yet",
);

export const publishDelay = histogram(
  "mm_publish_delay_seconds",
  "time from an event in Redis to the PubAck of its message",
  delaySeconds,
).labels();
