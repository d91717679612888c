import type { Settlement } from "@kenri/shared/queue/job.ts";
import { counter, fromZero } from "@kenri/shared/telemetry/metrics.ts";
import type { OrderRow, Sent } from "./orders.ts";
import { type Reason, reasons } from "./reasons.ts";

// What the worker counts for all tables (kenri_worker_…) has the durations of its phases and the
// expired leases.

const claimed = fromZero(
  counter("kenri_orders_claimed_total", "orders claimed or handed over to the worker").labels(),
);
const processed = counter(
  "kenri_orders_total",
  "settled orders by what came of them: `succeeded`, `failed` (to be retried), `aborted`, `released`",
  ["adapter", "outcome", "reason"],
);
const retries = counter(
  "kenri_orders_retry_total",
  "failed attempts that are followed by another one, by their number",
  ["attempt"],
);

const outcomeOf = { done: "succeeded", retry: "failed", failed: "aborted", released: "released" };

// Prometheus sees no increase in a series that begins with 1.
for (const adapter of ["http", "webhook"]) {
  fromZero(processed.labels(adapter, "succeeded", ""));
  for (const [reason, { then }] of Object.entries(reasons)) {
    fromZero(processed.labels(adapter, "aborted", reason));
    if (then === "retry") fromZero(processed.labels(adapter, "failed", reason));
  }
}

// Orders of endpoints that end without a worker.
export function countAborted(reason: Reason, orders: number): void {
  processed.inc({ adapter: "webhook", outcome: "aborted", reason }, orders);
}

export function observeClaimed(rows: OrderRow[]): void {
  claimed.inc(rows.length);
}

export function observeOrders(settled: Settlement<OrderRow, Sent>[], owned: Set<string>): void {
  for (const { row, kind, result } of settled) {
    if (!owned.has(row.id)) continue;
    processed.inc({
      adapter: row.content.adapter,
      outcome: outcomeOf[kind],
      reason: result?.reason ?? (kind === "retry" || kind === "failed" ? "INTERNAL_ERROR" : ""),
    });
    if (kind === "retry") retries.inc({ attempt: `${row.attempts + 1}` });
  }
}
