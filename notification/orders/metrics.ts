import type { Settlement } from "@kenri/shared/queue/job.ts";
import { counter } from "@kenri/shared/telemetry/metrics.ts";
import type { OrderRow, Sent } from "./orders.ts";

const processed = counter(
  "kenri_orders_total",
  "settled orders by what came of them: `succeeded`, `failed` (to be retried), `aborted`, `released`",
  ["adapter", "outcome", "reason"],
);

const outcomeOf = { done: "succeeded", retry: "failed", failed: "aborted", released: "released" };

export function observeOrders(settled: Settlement<OrderRow, Sent>[], owned: Set<string>): void {
  for (const { row, kind, result } of settled) {
    if (!owned.has(row.id)) continue;
    processed.inc({
      adapter: row.content.adapter,
      outcome: outcomeOf[kind],
      reason: result?.reason ?? "",
    });
  }
}
