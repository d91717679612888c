import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { Deadlines } from "./deadlines.ts";

const deadlines = new Deadlines(100);

Deno.test("work ends as it would, unless it takes too long", async () => {
  const late = () => new Error("too late");
  assert.equal(await deadlines.within(Promise.resolve("done"), late), "done");
  await assert.rejects(deadlines.within(Promise.reject(new Error("failed")), late), /failed/);
  const work = Promise.withResolvers<void>();
  const never = assert.rejects(deadlines.within(work.promise, late), /too late/);
  await Promise.all([never, pause(1_000)]); // a deadline does not keep the process from ending
  work.reject(new Error("failed later"));
});

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
