import assert from "node:assert/strict";
import type { Claimed } from "./job.ts";
import { settlementOf } from "./outcomes.ts";

const row: Claimed = { id: "1", key: null, token: "t", attempts: 0, takenOver: false };
const job = { maxAttempts: 3, backoff: { delaysMs: [10, 20] } };

Deno.test("a retry waits for the backoff, or for a delay of its own", () => {
  const retry = { kind: "retry", error: "x" } as const;
  assert.deepEqual(settlementOf(row, retry, job), { row, ...retry, delayMs: 10 });
  const second = { ...row, attempts: 1 };
  assert.deepEqual(settlementOf(second, retry, job), { row: second, ...retry, delayMs: 20 });
  const own = settlementOf(row, { ...retry, delayMs: 500 }, job);
  assert.deepEqual(own, { row, ...retry, delayMs: 500 });
});

Deno.test("a row fails for good when its last attempt fails, whatever its delay", () => {
  const last = { ...row, attempts: 2 };
  for (const delay of [{}, { delayMs: 500 }]) {
    assert.deepEqual(settlementOf(last, { kind: "retry", error: "x", ...delay }, job), {
      row: last,
      kind: "failed",
      error: "x",
      attempted: true,
    });
  }
});

Deno.test("what is put off or could not be tried goes back with nothing counted", () => {
  const last = { ...row, attempts: 2 };
  const later = settlementOf(last, { kind: "later", delayMs: 500, lane: "a" }, job);
  assert.deepEqual(later, { row: last, kind: "released", delayMs: 500, lane: "a" });
  const unavailable = settlementOf(last, { kind: "unavailable", error: "away" }, job);
  assert.deepEqual(unavailable, { row: last, kind: "released" });
});
