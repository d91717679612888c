import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { Deadlines } from "./deadlines.ts";

Deno.test("a deadline that is not met is missed once, soon after its time, and one that is met never", async () => {
  const deadlines = new Deadlines(100);
  const missed: string[] = [];
  deadlines.begin(() => missed.push("first"));
  deadlines.meet(deadlines.begin(() => missed.push("met")));
  await pause(300);
  deadlines.begin(() => missed.push("second")); // its time comes when the timer has looked once
  assert.deepEqual(missed, ["first"]);
  await pause(600);
  assert.deepEqual(missed, ["first", "second"]);
  deadlines.begin(() => missed.push("third")); // the timer had ended
  await pause(600);
  assert.deepEqual(missed, ["first", "second", "third"]);
});
