import assert from "node:assert/strict";
import type { Reason } from "../orders/reasons.ts";
import { type Health, moveAfter, probeDelayMs } from "./health.ts";

const options = { failuresToPark: 5, probeMinMs: 5_000, probeMaxMs: 300_000 };
const well: Health = {
  endpoint_id: "e",
  state: "ACTIVE",
  failures: 0,
  probes: 0,
  probe_order_id: null,
};
const failing: Health = { ...well, state: "FAILING", failures: 5, probe_order_id: "probe" };

const after = (before: Health, ...reasons: (Reason | undefined)[]) =>
  moveAfter(
    before,
    reasons.map((reason) => ({ endpointId: "e", orderId: "order", reason, failuresBefore: 0 })),
    options,
  );
const probed = (before: Health, reason: Reason | undefined) =>
  moveAfter(before, [{ endpointId: "e", orderId: "probe", reason, failuresBefore: 5 }], options);

Deno.test("five failures in a row that say unreachable make an endpoint FAILING", () => {
  const unreachable: Reason[] = [
    "TIMEOUT",
    "CONNECTION_FAILED",
    "DNS_FAILED",
    "TLS_FAILED",
    "SERVER_ERROR",
  ];
  const { state, failures, probeInMs, changed } = after(well, ...unreachable);
  assert.deepEqual({ state, failures, probeInMs, changed }, {
    state: "FAILING",
    failures: 5,
    probeInMs: 5_000,
    changed: true,
  });
  assert.equal(after(well, ...unreachable.slice(1)).state, "ACTIVE");
  assert.equal(after({ ...well, failures: 4 }, "TIMEOUT").state, "FAILING");
});

Deno.test("an answer of any kind but 5xx ends the row, and other failures say nothing", () => {
  const four: Reason[] = ["TIMEOUT", "TIMEOUT", "TIMEOUT", "TIMEOUT"];
  for (const answer of [undefined, "REFUSED", "REDIRECTED", "THROTTLED"] as const) {
    assert.equal(after(well, ...four, answer, ...four).failures, 4);
  }
  for (const silence of ["INTERNAL_ERROR", "ADDRESS_BLOCKED", "EXPIRED"] as const) {
    assert.equal(after(well, ...four, silence).failures, 4);
    assert.equal(after(well, ...four, silence, "TIMEOUT").state, "FAILING");
  }
});

Deno.test("a probe that fails doubles the time to the next one, up to a limit", () => {
  const move = probed({ ...failing, probes: 2 }, "TIMEOUT");
  assert.deepEqual(
    [move.state, move.probes, move.probeInMs, move.endsProbe],
    ["FAILING", 3, 40_000, true],
  );
  assert.equal(probed(failing, "INTERNAL_ERROR").probeInMs, 10_000);
  assert.deepEqual(
    [0, 1, 2, 5, 6, 1_500].map((failed) => probeDelayMs(failed, options) / 1_000),
    [5, 10, 20, 160, 300, 300],
  );
});

Deno.test("an order that was under way when its endpoint failed is no probe", () => {
  const move = after(failing, "TIMEOUT");
  assert.deepEqual(
    [move.state, move.probes, move.probeInMs, move.endsProbe],
    ["FAILING", 0, undefined, false],
  );
});

Deno.test("an endpoint that answers is ACTIVE again, even if it refuses the order", () => {
  for (const reason of [undefined, "REFUSED", "THROTTLED"] as const) {
    const { state, failures, probes } = probed({ ...failing, probes: 3 }, reason);
    assert.deepEqual({ state, failures, probes }, { state: "ACTIVE", failures: 0, probes: 0 });
  }
  assert.equal(after(failing, undefined).state, "ACTIVE");
});

Deno.test("410 ends an endpoint at once", () => {
  assert.equal(after(well, "GONE", undefined).state, "GONE");
  assert.equal(probed(failing, "GONE").state, "GONE");
});

Deno.test("a state that its caller or the time has chosen is not changed by sends", () => {
  for (const state of ["PAUSED", "DISABLED", "GONE", "DELETED"] as const) {
    for (const reason of [undefined, "TIMEOUT", "GONE"] as const) {
      const move = after({ ...failing, state }, reason);
      assert.deepEqual([move.state, move.failures, move.changed], [state, 5, false]);
    }
  }
});
