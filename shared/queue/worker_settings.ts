import { count, duration, maxTimerMs, number } from "../process/setting_kinds.ts";
import type { Backoff } from "./backoff.ts";

const factor = (): ReturnType<typeof number> => number({ min: 0, max: 100, whole: false });

export const workerSettings = {
  "poll-interval": duration(maxTimerMs).prefault("1s").describe(
    "Time between two claims; a new row wakes the worker of its process at once",
  ),
  "batch-size": number({ min: 1, max: 5_000 }).prefault("200").describe("Rows per claim"),
  "lease": duration(maxTimerMs).prefault("30s").describe(
    "How long a claim lasts without a heartbeat",
  ),
  "max-attempts": count().prefault("10").describe(
    "Attempts before a row is `FAILED` and becomes a dead letter",
  ),
  "backoff-base": duration().prefault("1s").describe(
    "Pause after the first failed attempt; it doubles with each further one",
  ),
  "backoff-max": duration().prefault("60s").describe("Longest pause, before its random factor"),
  "backoff-min": duration().prefault("1s").describe("Shortest pause, whatever its random factor"),
  "backoff-jitter-min": factor().prefault("0.5").describe(
    "Smallest random factor of a pause",
  ),
  "backoff-jitter-max": factor().prefault("1.5").describe("Largest random factor of a pause"),
};

export interface WorkerOptions {
  pollIntervalMs: number;
  batchSize: number;
  leaseMs: number;
  maxAttempts: number;
  backoff: Backoff;
}

export function workerOptions(
  settings: Record<keyof typeof workerSettings, number>,
): WorkerOptions {
  return {
    pollIntervalMs: settings["poll-interval"],
    batchSize: settings["batch-size"],
    leaseMs: settings["lease"],
    maxAttempts: settings["max-attempts"],
    backoff: {
      baseMs: settings["backoff-base"],
      maxMs: settings["backoff-max"],
      minMs: settings["backoff-min"],
      jitterMin: settings["backoff-jitter-min"],
      jitterMax: settings["backoff-jitter-max"],
    },
  };
}
