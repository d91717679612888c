import assert from "node:assert/strict";
import { start, Table, turns } from "./worker_testing.ts";

// Ids begin with their lane.
const laneOf = (id: string) => id.slice(0, 1);
const done = (id: string) => ({ kind: "done" as const, result: id });

Deno.test("rows behind slow lanes don't delay rows of other lanes, however many they are", async () => {
  const slow = Array.from({ length: 200 }, (_, i) => `${"stuv"[i % 4]}${i}`);
  const table = new Table([...slow, "f0", "f1", "f2"], (id) => id, laneOf);
  const gate = Promise.withResolvers<void>();
  let atOnce = 0;
  let most = 0;
  const run = start(table, async ({ id, lane }) => {
    if (lane === "f") return done(id);
    if (lane === "s") most = Math.max(most, ++atOnce);
    await gate.promise;
    if (lane === "s") atOnce--;
    return done(id);
  }, { atOnce: () => 3, pollIntervalMs: 60_000 });
  await table.untilSettled(3);
  assert.deepEqual(table.settled.map(({ row }) => row.id), ["f0", "f1", "f2"]);
  table.write("f3");
  run.handover.wake.trigger();
  await table.untilSettled(4);
  gate.resolve();
  await table.untilSettled(204);
  await run.stop();
  assert.equal(most, 3);
});

Deno.test("a row that is put off pauses its lane and not the worker, and nothing is counted", async () => {
  const table = new Table(["a0", "a1", "a2", "b0"], (id) => id, laneOf);
  let throttled = true;
  const worked: string[] = [];
  const run = start(table, ({ id, lane }) => {
    worked.push(id);
    const later = { kind: "later", delayMs: 50, lane: "a" } as const;
    return Promise.resolve(throttled && lane === "a" ? later : done(id));
  }, {
    atOnce: () => 1,
    pollIntervalMs: 60_000,
    settle: async (settlements) => {
      await turns(10);
      return await table.settle(settlements);
    },
  });
  const from = performance.now();
  await table.until(() => table.row("b0").finished !== undefined);
  await table.until(() => table.row("a2").lease === undefined);
  assert.deepEqual(worked, ["a0", "b0"], "the rows that wait for the lane are not tried");
  throttled = false;
  table.write("a3");
  run.handover.wake.trigger();
  await table.until(() => table.rows.every(({ finished }) => finished === "done"));
  assert.ok(performance.now() - from < 10_000, "the lane resumes by itself");
  await run.stop();
  assert.ok(table.contexts.some(({ lanes }) => lanes.includes("a")));
  assert.deepEqual(worked.slice(2).sort(), ["a0", "a1", "a2", "a3"]);
  assert.ok(table.rows.every(({ attempts }) => attempts === 0));
  assert.deepEqual(run.log, []);
});

Deno.test("a row that is put off holds back the later rows of its key", async () => {
  const table = new Table(["a0", "a1"], () => "a");
  const worked: string[] = [];
  const run = start(table, ({ id }) => {
    worked.push(id);
    return Promise.resolve(worked.length === 1 ? { kind: "later", delayMs: 30 } : done(id));
  });
  await table.until(() => table.row("a1").finished === "done");
  await run.stop();
  assert.deepEqual(worked, ["a0", "a0", "a1"]);
});

Deno.test("a stop does not wait for a paused lane", async () => {
  const table = new Table(["a0", "a1"], () => null, laneOf);
  const run = start(
    table,
    () => Promise.resolve({ kind: "later", delayMs: 3_600_000, lane: "a" }),
    { atOnce: () => 1 },
  );
  await table.untilSettled(2);
  await turns(5);
  await run.stop();
});
