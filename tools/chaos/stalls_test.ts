import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { type Stall, watchStalls } from "./stalls.ts";

Deno.test("a process that stalled notices it afterwards", async () => {
  const stalls: Stall[] = [];
  const stopWatching = watchStalls((stall) => stalls.push(stall), Date.now);
  await pause(150);
  const from = Date.now();
  while (Date.now() < from + 800) { /* Nothing else gets a turn. */ }
  await pause(150);
  stopWatching();
  const stall = stalls.find(({ until }) => until >= from + 800);
  assert.ok(stall && stall.from <= from, JSON.stringify(stalls));
});
