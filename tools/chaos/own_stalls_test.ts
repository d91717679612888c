import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { OwnStalls } from "./own_stalls.ts";

Deno.test("a process that stands still notices it afterwards", async () => {
  using own = new OwnStalls();
  await pause(150);
  assert.equal(own.stalls.length, 0);
  const from = Date.now();
  while (Date.now() < from + 800) { /* Nothing else gets a turn. */ }
  await pause(150);
  const [stall] = own.stalls;
  assert.ok(stall && stall.from <= from && stall.until >= from + 800);
});
