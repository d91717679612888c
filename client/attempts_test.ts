import assert from "node:assert/strict";
import { pauseBefore, retryAfterMs } from "./attempts.ts";

Deno.test("pauses grow to a limit, each between half and one and a half times its mean", () => {
  const means = [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000];
  for (const [i, mean] of means.entries()) {
    assert.equal(pauseBefore(i + 1, 0, 0), mean / 2);
    assert.equal(pauseBefore(i + 1, 0, 1), mean * 1.5);
  }
  assert.equal(pauseBefore(10_000, 0, 1), 7_500);
});

Deno.test("a pause is never shorter than Retry-After asks, and its random part spreads the callers", () => {
  assert.equal(pauseBefore(1, 2_000, 0), 2_050);
  assert.equal(pauseBefore(1, 2_000, 1), 2_150);
});

Deno.test("Retry-After may be seconds or a date, and anything else adds no pause", () => {
  const now = Date.parse("2026-01-02T03:04:05Z");
  const cases: [string | null, number][] = [
    [null, 0],
    ["", 0],
    ["1", 1_000],
    ["120", 120_000],
    ["Fri, 02 Jan 2026 03:04:15 GMT", 10_000],
    ["Fri, 02 Jan 2026 03:04:00 GMT", 0],
    ["-5", 0],
    ["Infinity", 0],
    ["soon", 0],
  ];
  for (const [value, ms] of cases) assert.equal(retryAfterMs(value, now), ms, `${value}`);
});
