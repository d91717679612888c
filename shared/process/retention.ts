import type { Log } from "./log.ts";
import { pause } from "./signals.ts";

// Small enough that no lock is held for long, large enough that millions of rows go in minutes.
export const deleteBatchSize = 1_000;

// Runs one bounded delete after the other until one finds less than a full batch.
export async function deleteInBatches(
  deleteSome: (limit: number) => Promise<number>,
  signal: AbortSignal,
): Promise<number> {
  let total = 0;
  while (!signal.aborted) {
    const deleted = await deleteSome(deleteBatchSize);
    total += deleted;
    if (deleted < deleteBatchSize) break;
  }
  return total;
}

// Cleans up at start and then once per interval; while it fails it tries each minute.
export async function runRetention(
  clean: (signal: AbortSignal) => Promise<void>,
  intervalMs: number,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    let nextMs = intervalMs;
    try {
      await clean(signal);
    } catch (error) {
      nextMs = Math.min(intervalMs, 60_000);
      log.error("Retention failed: {error}", { error });
    }
    await pause(nextMs, signal);
  }
}
