import type { OrderRow, Sent } from "../orders/orders.ts";
import { verdictOn } from "./health.ts";

// The orders of an endpoint that were already in hand when it began to fail. The table learns of
// failures when they are settled, which is too late for these: they would all use up an attempt.
export class FailingInHand {
  readonly #failuresToPark: number;
  readonly #failures = new Map<string, number>(); // in a row, by endpoint
  readonly #failedAt = new Map<string, number>(); // by performance.now(), like the claims

  constructor(failuresToPark: number) {
    this.#failuresToPark = failuresToPark;
  }

  // Whether the endpoint has become unavailable since the order was claimed.
  has({ claimedAt, content: { endpoint_id } }: OrderRow): boolean {
    return endpoint_id !== null && claimedAt < (this.#failedAt.get(endpoint_id) ?? 0);
  }

  note({ content: { endpoint_id } }: OrderRow, { tried, reason }: Sent): void {
    if (endpoint_id === null || !tried) return;
    const verdict = verdictOn(reason);
    if (verdict === "up") {
      this.#failures.delete(endpoint_id);
      this.#failedAt.delete(endpoint_id);
    }
    if (verdict !== "down" && verdict !== "gone") return;
    const failures = (this.#failures.get(endpoint_id) ?? 0) + 1;
    this.#failures.set(endpoint_id, failures);
    if (failures < this.#failuresToPark && verdict === "down") return;
    this.#failedAt.set(endpoint_id, performance.now());
    this.#failures.delete(endpoint_id);
  }
}
