import assert from "node:assert/strict";
import { Breaker } from "./breaker.ts";

let now = 0;

function brokenBreaker(): Breaker {
  now = 1_000;
  const breaker = new Breaker(30_000, () => now);
  for (let i = 0; i < 5; i++) {
    assert.equal(breaker.begin(), 0);
    breaker.failed();
  }
  return breaker;
}

Deno.test("it opens after five failures in a row, and a success between them starts anew", () => {
  const breaker = new Breaker(30_000, () => 0);
  for (const outcome of [..."ffffsffff"]) {
    assert.equal(breaker.begin(), 0);
    if (outcome === "s") breaker.succeeded();
    else breaker.failed();
  }
  assert.equal(breaker.isOpen, false);
  breaker.failed();
  assert.equal(breaker.begin(), 30_000);
});

Deno.test("after the pause exactly one request is a probe, and a success closes it", () => {
  const breaker = brokenBreaker();
  now += 29_999;
  assert.equal(breaker.begin(), 1);
  now += 1;
  assert.equal(breaker.begin(), 0);
  assert.equal(breaker.begin(), 30_000);
  breaker.succeeded();
  assert.equal(breaker.begin(), 0);
  assert.equal(breaker.isOpen, false);
});

Deno.test("a probe that fails leaves it open, and the next comes a pause after it", () => {
  const breaker = brokenBreaker();
  now += 30_000;
  assert.equal(breaker.begin(), 0);
  breaker.failed();
  assert.equal(breaker.begin(), 30_000);
  now += 30_000;
  assert.equal(breaker.begin(), 0);
});

Deno.test("failures of requests that were under way do not delay the probe", () => {
  const breaker = brokenBreaker();
  now += 20_000;
  breaker.failed();
  assert.equal(breaker.begin(), 10_000);
});
