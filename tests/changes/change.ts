// A change as the API hands it to the batch.
import type { Change } from "../../entitlement/entitlement.ts";

export function changeOf(fields: Partial<Change> = {}): Change {
  return {
    action: "GRANT",
    userId: "ann",
    stockKeepingUnit: "book",
    reason: "purchase",
    purchaseId: "p-1",
    caller: "",
    idempotencyKey: crypto.randomUUID(),
    traceId: "trace",
    traceparent: null,
    ...fields,
  };
}
