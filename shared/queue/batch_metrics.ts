import { gauge } from "../telemetry/metrics.ts";
import { onScrape } from "../telemetry/scrape.ts";

const batchWaiting = gauge(
  "kenri_batch_waiting_current",
  "items that wait for the next batch",
  ["batch"],
);
const batches = new Map<string, { waiting: number }>();
onScrape(() => {
  for (const [batch, { waiting }] of batches) batchWaiting.set({ batch }, waiting);
});

// A later one of the same name takes its place.
export function observeBatch(name: string, batch: { waiting: number }): void {
  batches.set(name, batch);
}
