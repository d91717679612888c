import { gauge } from "../telemetry/metrics.ts";
import { onScrape } from "../telemetry/scrape.ts";
import type { Database } from "./postgres.ts";

const connections = gauge(
  "kenri_database_pool_connections",
  "connections of the pool: `busy` or `idle`; 10 at most",
  ["state"],
);
const waiting = gauge("kenri_database_pool_waiting", "callers that wait for a connection");

export function observePool(database: Database): void {
  onScrape(() => {
    const { totalCount, idleCount, waitingCount } = database;
    connections.set({ state: "busy" }, totalCount - idleCount);
    connections.set({ state: "idle" }, idleCount);
    waiting.set(waitingCount);
  });
}
