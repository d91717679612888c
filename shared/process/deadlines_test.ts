import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { Deadlines } from "./deadlines.ts";

const deadlines = new Deadlines(100);

Deno.test("a deadline that is not met is missed once, soon after its time, and one that is met never", async () => {
  const missed: string[] = [];
  deadlines.begin(() => missed.push("first"));
  deadlines.meet(deadlines.begin(() => missed.push("met")));
  deadlines.begin(() => missed.push("second"));
  await pause(1_000);
  assert.deepEqual(missed, ["first", "second"]);
  deadlines.begin(() => missed.push("third"));
  await pause(1_000);
  assert.deepEqual(missed, ["first", "second", "third"]);
});
