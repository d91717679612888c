import assert from "node:assert/strict";
import { start, Table, turns } from "./worker_testing.ts";

Deno.test("rows of one key are worked on one after the other, rows of other keys at the same time", async () => {
  const table = new Table(["a1", "b1", "a2", "b2", "a3"], (id) => id.slice(0, 1));
  const done: string[] = [];
  const underWay = new Set<string | null>();
  let together = 0;
  const run = start(table, async ({ id, key }) => {
    assert.ok(!underWay.has(key));
    underWay.add(key);
    together = Math.max(together, underWay.size);
    await turns(3);
    underWay.delete(key);
    done.push(id);
    return { kind: "done", result: id };
  });
  await table.untilSettled(5);
  await run.stop();
  assert.equal(together, 2);
  assert.deepEqual(done.filter((id) => id.startsWith("a")), ["a1", "a2", "a3"]);
  assert.deepEqual(done.filter((id) => id.startsWith("b")), ["b1", "b2"]);
});

Deno.test("a row that waits for a retry holds back the later rows of its key, a failed one does not", async () => {
  const table = new Table(["r1", "r2", "f1", "f2"], (id) => id.slice(0, 1));
  const run = start(table, ({ id }) => {
    if (id === "r1") return Promise.resolve({ kind: "retry", error: "x" });
    if (id === "f1") return Promise.resolve({ kind: "failed", error: "x" });
    return Promise.resolve({ kind: "done", result: id });
  }, { once: true });
  await table.untilSettled(4);
  await run.stop();
  const kinds = Object.fromEntries(table.settled.map(({ row, kind }) => [row.id, kind]));
  assert.deepEqual(kinds, { r1: "retry", r2: "released", f1: "failed", f2: "done" });
});

Deno.test("a row that could not be tried holds back the later rows of its key", async () => {
  const table = new Table(["a1", "a2"], () => "a");
  const worked: string[] = [];
  const run = start(table, ({ id }) => {
    worked.push(id);
    return Promise.resolve({ kind: "unavailable", error: "away" });
  }, { once: true });
  await table.untilSettled(2);
  await run.stop();
  assert.deepEqual(worked, ["a1"]);
  assert.deepEqual(table.settled.map(({ row, kind }) => [row.id, kind]), [
    ["a1", "released"],
    ["a2", "released"],
  ]);
});

Deno.test("a row that is written behind a row in hand is claimed at once, and worked on after it", async () => {
  const table = new Table(["1"], () => "a");
  const gate = Promise.withResolvers<void>();
  const worked: string[] = [];
  const run = start(table, async ({ id }) => {
    worked.push(id);
    if (id === "1") await gate.promise;
    return { kind: "done", result: id };
  }, { pollIntervalMs: 60_000 });
  await table.until(() => table.limits.length === 1);
  table.write("2");
  run.handover.wake.trigger();
  await table.until(() => table.row("2").lease !== undefined);
  await turns(5);
  assert.deepEqual(worked, ["1"]);
  gate.resolve();
  await table.untilSettled(2);
  await run.stop();
  assert.deepEqual(worked, ["1", "2"]);
  assert.equal(table.limits.length, 2);
});

Deno.test("a backlog of one key is worked off without waiting for the poll", async () => {
  const table = new Table(Array.from({ length: 100 }, (_, i) => `${i}`), () => "a");
  const worked: string[] = [];
  const run = start(table, async ({ id }) => {
    worked.push(id);
    await turns(1);
    return { kind: "done", result: id };
  }, { pollIntervalMs: 60_000 });
  await table.untilSettled(100);
  await run.stop();
  assert.deepEqual(worked, table.rows.map(({ id }) => id));
});

Deno.test("a slow backlog of one key leaves room for other keys, and goes on where it was left", async () => {
  const hot = Array.from({ length: 200 }, (_, i) => `a${i}`);
  const table = new Table([...hot, "b"], (id) => id.slice(0, 1));
  const gate = Promise.withResolvers<void>();
  const run = start(table, async ({ id, key }) => {
    if (key === "a") await gate.promise;
    return { kind: "done", result: id };
  }, { pollIntervalMs: 50 });
  await table.until(() => table.row("b").finished === "done");
  gate.resolve();
  await table.untilSettled(201);
  await run.stop();
  const worked = table.settled.map(({ row }) => row.id).filter((id) => id !== "b");
  assert.deepEqual(worked, hot);
  assert.equal(table.contexts.filter(({ fromOldest }) => fromOldest).length, 1, "once");
});
