import manifest from "../deno.json" with { type: "json" };
import { gauge } from "./metrics.ts";
import { onScrape } from "./scrape.ts";

const buildInfo = gauge("kenri_build_info", "always 1; the labels are the versions that run here", [
  ...["service", "version", "deno"],
]);
const lag = gauge("kenri_event_loop_lag_seconds", "how late a timer fired during the scrape");
const resident = gauge("process_resident_memory_bytes", "memory of the process");
const heap = gauge("process_heap_used_bytes", "memory in use by JavaScript");
const startTime = gauge("process_start_time_seconds", "when the process started, as a Unix time");

export function observeProcess(service: string): void {
  buildInfo.set({ service, version: manifest.version, deno: Deno.version.deno }, 1);
  startTime.set(performance.timeOrigin / 1_000);
  onScrape(async () => {
    const from = performance.now();
    await new Promise((turn) => setTimeout(turn, 0));
    lag.set((performance.now() - from) / 1_000);
    const { rss, heapUsed } = Deno.memoryUsage();
    resident.set(rss);
    heap.set(heapUsed);
  });
}
