import assert from "node:assert/strict";
import fc from "fast-check";
import { backoffMs } from "./backoff.ts";

const plain = { baseMs: 1_000, maxMs: 60_000, minMs: 1, jitterMin: 1, jitterMax: 1 };

Deno.test("the pause doubles with each attempt, up to the cap", () => {
  const pauses = [1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => backoffMs(plain, attempt));
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
});

Deno.test("the jitter stretches the capped pause between its two ends", () => {
  const jittered = { ...plain, jitterMin: 0.5, jitterMax: 1.5 };
  assert.equal(backoffMs(jittered, 1, 0), 500);
  assert.equal(backoffMs(jittered, 1, 0.5), 1_000);
  assert.equal(backoffMs(jittered, 20, 1), 90_000);
});

Deno.test("the pause is never below the minimum", () => {
  assert.equal(backoffMs({ ...plain, minMs: 3_000, jitterMin: 0, jitterMax: 0 }, 1), 3_000);
  assert.equal(backoffMs({ ...plain, minMs: 100_000 }, 9), 100_000);
});

Deno.test("the pause is finite and within its bounds, whatever the attempt", () => {
  const ms = fc.integer({ min: 1, max: 1_000_000_000 });
  const factor = fc.double({ min: 0, max: 100, noNaN: true });
  const backoffs = fc.record({ baseMs: ms, maxMs: ms, minMs: ms, from: factor, more: factor });
  fc.assert(fc.property(backoffs, fc.integer({ min: 1, max: 1_000_000 }), (given, attempt) => {
    const { from, more, ...rest } = given;
    const pause = backoffMs({ ...rest, jitterMin: from, jitterMax: from + more }, attempt);
    assert.ok(pause >= rest.minMs);
    assert.ok(pause <= Math.max(rest.minMs, rest.maxMs * (from + more)));
  }));
});

Deno.test("a table of delays is followed in its order, and its last delay repeats", () => {
  const table = { delaysMs: [5_000, 10_000, 20_000] };
  const pauses = [1, 2, 3, 4, 100].map((attempt) => backoffMs(table, attempt));
  assert.deepEqual(pauses, [5_000, 10_000, 20_000, 20_000, 20_000]);
});
