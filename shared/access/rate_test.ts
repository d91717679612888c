import assert from "node:assert/strict";
import { ApiError } from "../http/errors.ts";
import { admitAtRate, rateOf } from "./rate.ts";

function bucketAt(perSecond: number, burst: number) {
  const clock = { ms: 5_000 };
  const admit = admitAtRate({ perSecond, burst }, "too many", () => clock.ms);
  // How many of these requests are admitted.
  const come = (caller: string, times: number) => {
    let admitted = 0;
    for (let i = 0; i < times; i++) {
      try {
        admit(caller);
        admitted++;
      } catch (error) {
        assert.ok(error instanceof ApiError);
        assert.equal(error.status, 429);
      }
    }
    return admitted;
  };
  return { clock, admit, come };
}

Deno.test("a burst is admitted at once, and afterwards the rate limits requests", () => {
  const { clock, come } = bucketAt(10, 5);
  assert.equal(come("ann", 20), 5);
  clock.ms += 99;
  assert.equal(come("ann", 1), 0);
  clock.ms += 1;
  assert.equal(come("ann", 2), 1);
  clock.ms += 300;
  assert.equal(come("ann", 20), 3);
  clock.ms += 60_000;
  assert.equal(come("ann", 20), 5, "a bucket holds no more than a burst");
});

Deno.test("the rate holds over a long time under too many requests", () => {
  for (const perSecond of [0.5, 3, 7, 999.5]) {
    const { clock, come } = bucketAt(perSecond, 1);
    let admitted = 0;
    for (; clock.ms < 105_000; clock.ms += 1) admitted += come("ann", 1);
    const wanted = Math.min(perSecond, 1_000) * 100;
    // A token that comes between two milliseconds is taken at the next.
    assert.ok(admitted <= wanted + 1 && admitted >= wanted * 0.5, `${perSecond}: ${admitted}`);
  }
});

Deno.test("callers do not take each other's tokens", () => {
  const { come } = bucketAt(1, 2);
  assert.deepEqual([come("ann", 9), come("bob", 9), come("", 9)], [2, 2, 2]);
});

Deno.test("Retry-After contains the whole seconds until the next request is admitted", () => {
  const { clock, admit, come } = bucketAt(0.4, 1); // one in 2.5 seconds
  const askedToWait = () => {
    try {
      admit("ann");
      return 0;
    } catch (error) {
      return Number((error as ApiError).headers["Retry-After"]);
    }
  };
  assert.equal(askedToWait(), 0);
  assert.equal(askedToWait(), 3);
  clock.ms += 2_499;
  assert.equal(askedToWait(), 1);
  clock.ms += 1;
  assert.equal(come("ann", 1), 1);
});

Deno.test("a caller that floods stays limited while thousands of other callers send requests", () => {
  const { come } = bucketAt(0.01, 1);
  let admitted = 0;
  for (let i = 0; i < 20_000; i++) {
    admitted += come("ann", 1);
    assert.equal(come(`${i}`, 1), 1);
  }
  assert.equal(admitted, 1);
});

Deno.test("without a rate there is no limit, and without a burst a bucket holds the tokens of one second", () => {
  assert.equal(rateOf({ "access.rate": undefined, "access.burst": 5 }), undefined);
  const burstOf = (rate: number, burst?: number) =>
    rateOf({ "access.rate": rate, "access.burst": burst })?.burst;
  assert.deepEqual([burstOf(20), burstOf(2.5), burstOf(0.1), burstOf(20, 7)], [20, 3, 1, 7]);
});
