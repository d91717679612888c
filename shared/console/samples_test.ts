import assert from "node:assert/strict";
import { points, Samples } from "./samples.ts";

async function sampled(totals: (number | undefined)[], everyMs = 1_000): Promise<Samples<"seen">> {
  const left = [...totals];
  const samples = new Samples(() => Promise.resolve({ seen: left.shift() }));
  for (let i = 0; i < totals.length; i++) await samples.take(i * everyMs);
  return samples;
}

Deno.test("the rate is that of the last five seconds", async () => {
  const samples = await sampled([0, 1_000, 1_000, 1_000, 1_010, 1_020, 1_030]);
  assert.equal(samples.rate("seen"), 6);
});

Deno.test("a rate is not known before there are two samples, or without the counter", async () => {
  assert.equal((await sampled([])).rate("seen"), undefined);
  assert.equal((await sampled([5])).rate("seen"), undefined);
  assert.equal((await sampled([undefined, undefined])).rate("seen"), undefined);
  assert.equal((await sampled([5, 5])).rate("seen"), 0);
});

Deno.test("the rates go back five minutes, the newest last, and begin where something is known", async () => {
  const samples = await sampled(Array.from({ length: 11 }, (_, i) => i * i));
  const rates = samples.rates("seen");
  assert.equal(rates.length, points);
  assert.deepEqual(rates.slice(-3), [undefined, 5, 15]);
  const whole = await sampled(Array.from({ length: 400 }, (_, i) => 2 * i));
  assert.deepEqual(new Set(whole.rates("seen")), new Set([2]));
});
