import { gauge } from "../telemetry/metrics.ts";
import { onScrape } from "../telemetry/scrape.ts";

const batchWaiting = gauge(
  "kenri_batch_waiting_current",
  "items that wait for a batch",
  ["batch"],
);
const batches = new Map<string, { waiting: number }>();
onScrape(() => {
  for (const [batch, { waiting }] of batches) batchWaiting.set({ batch }, waiting);
});

// A later batch with the same name replaces the earlier one.
export function observeBatch(name: string, batch: { waiting: number }): void {
  batches.set(name, batch);
}
