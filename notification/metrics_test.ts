import assert from "node:assert/strict";
import { metrics } from "@kenri/shared/telemetry/metrics.ts";
import type { NotificationRow } from "./deliveries.ts";
import { observeDelivered } from "./metrics.ts";

async function deliveriesSent(): Promise<number> {
  const line = /^notification_delivery_total\{result="sent"\} (\d+)$/m;
  return Number(line.exec(await metrics.metrics())?.[1]);
}

Deno.test("a send that lost its lease is not counted", async () => {
  const row = (id: string): NotificationRow => ({
    id,
    key: "ann:book",
    attempts: 0,
    takenOver: false,
    token: "t",
    claimedAt: 0,
    content: {
      event_id: id,
      user_id: "ann",
      type: "EntitlementGranted",
      payload: {},
      traceparent: null,
      age_seconds: 1,
    },
  });
  const before = await deliveriesSent();
  observeDelivered(
    ["owned", "lost"].map((id) => ({ row: row(id), kind: "done", result: { sentAt: 5 } })),
    new Set(["owned"]),
  );
  assert.equal(await deliveriesSent() - before, 1);
});
