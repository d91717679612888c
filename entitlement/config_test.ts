import assert from "node:assert/strict";
import { SettingsError } from "@kenri/shared/process/settings.ts";
import { readConfig } from "./config.ts";

const settings: Record<string, string> = {
  ENTITLEMENT_DATABASE_URL: "postgres://kenri@127.0.0.1/entitlement",
  ENTITLEMENT_NATS_STREAM: "events",
  ENTITLEMENT_NATS_SUBJECT: "entitlement.events",
  NATS_URL: "nats://127.0.0.1:4222",
  HOSTNAME: "one",
};

Deno.test("what the duplicate window may still swallow is taken for being on its way", () => {
  for (const [window, graceSeconds] of [["2m", 180], ["1500ms", 62], ["1h", 3_660]] as const) {
    const given = { ...settings, ENTITLEMENT_NATS_DUPLICATE_WINDOW: window };
    const { reconcile } = readConfig((name) => given[name as keyof typeof given]);
    assert.equal(reconcile.graceSeconds, graceSeconds, window);
  }
});

Deno.test("points need no setting, and have the defaults of the contract", () => {
  const { points, reservations, retention, stream } = readConfig((name) => settings[name]);
  assert.deepEqual(points, { unit: "points", maxBalance: Number.MAX_SAFE_INTEGER });
  assert.deepEqual(stream.subjects, ["entitlement.events", "points.events"]);
  const days = 86_400_000;
  assert.equal(retention.doneReservationsTtlMs, 30 * days);
  const { backoff, worker: _, ...others } = reservations;
  assert.deepEqual(others, {
    ...{ enabled: true, pollIntervalMs: 1_000, batchSize: 500, leaseMs: 30_000, maxAttempts: 10 },
    maxAheadMs: 1_826 * days,
  });
  assert.deepEqual(backoff, {
    ...{ baseMs: 1_000, maxMs: 60_000, minMs: 1_000, jitterMin: 0.5, jitterMax: 1.5 },
  });
});

Deno.test("the events of points have a subject of their own", () => {
  const given: typeof settings = { ...settings, ENTITLEMENT_POINTS_SUBJECT: "entitlement.events" };
  assert.throws(() => readConfig((name) => given[name]), (error) => {
    assert.ok(error instanceof SettingsError);
    return error.problems.join() ===
      "ENTITLEMENT_POINTS_SUBJECT must not be the same as ENTITLEMENT_NATS_SUBJECT";
  });
});
