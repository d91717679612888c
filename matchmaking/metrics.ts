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

const pairingDelay = histogram(
  "mm_pairing_delay_seconds",
  "time from when the second of two users has joined to their match, by the clock of Redis",
  shortSeconds,
).labels();

// How long the tickets waited. The two of a match follow each other.
export function observeMatched(waitsMs: number[]): void {
  for (const ms of waitsMs) timeToMatch.observe(ms / 1_000);
  for (let at = 0; at + 1 < waitsMs.length; at += 2) {
    pairingDelay.observe(Math.min(waitsMs[at] as number, waitsMs[at + 1] as number) / 1_000);
  }
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

export const eventsAge = collectedGauge(
  "mm_events_age_seconds",
  "how long the oldest event has waited to be published; 0 if none waits",
);
export const deadEvents = collectedGauge(
  "mm_events_dead_current",
  "events that could not be published and were given up",
);
export const pairableAge = collectedGauge(
  "mm_pairable_age_seconds",
  "how long two users have waited who could be matched with each other; 0 if there are none",
  ["mode"],
);

export const publishDelay = histogram(
  "mm_publish_delay_seconds",
  "time from an event in Redis to the PubAck of its message",
  delaySeconds,
).labels();
