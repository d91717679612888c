import { count, duration, maxTimerMs, number } from "../process/setting_kinds.ts";
import type { Backoff } from "./backoff.ts";

const factor = (): ReturnType<typeof number> => number({ min: 0, max: 100, whole: false });

export const workerSettings = {
  "poll-interval": duration(maxTimerMs).prefault("1s"),
  "batch-size": number({ min: 1, max: 5_000 }).prefault("200"),
  "lease": duration(maxTimerMs).prefault("30s"),
  "max-attempts": count().prefault("10"),
  "backoff-base": duration().prefault("1s"),
  "backoff-max": duration().prefault("60s"),
  "backoff-min": duration().prefault("1s"),
  "backoff-jitter-min": factor().prefault("0.5"),
  "backoff-jitter-max": factor().prefault("1.5"),
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
