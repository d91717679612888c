import assert from "node:assert/strict";
import { start, Table } from "./worker_testing.ts";

Deno.test("a row whose lease was lost before its turn is not worked on", async () => {
  const table = new Table(["a1", "a2"], () => "a");
  const gate = Promise.withResolvers<void>();
  const worked: string[] = [];
  const run = start(table, async ({ id }) => {
    worked.push(id);
    await gate.promise;
    return { kind: "done", result: id };
  }, { leaseMs: 20 });
  await table.until(() => worked.length > 0);
  table.steal("a2");
  await new Promise((over) => setTimeout(over, 30));
  gate.resolve();
  await table.untilSettled(1);
  await run.stop();
  assert.deepEqual(worked, ["a1"]);
});

Deno.test("after an outage longer than its lease a worker does not take over its own rows", async () => {
  const table = new Table(["1"]);
  const gate = Promise.withResolvers<void>();
  const run = start(table, async ({ id }) => {
    await gate.promise;
    return { kind: "done", result: id };
  }, { leaseMs: 20 });
  for (let outages = 0; outages < 10; outages++) {
    const claims = table.limits.length;
    await table.until(() => table.limits.length > claims + 1);
    table.away = true;
    await new Promise((over) => setTimeout(over, 30));
    table.away = false;
  }
  gate.resolve();
  await table.untilSettled(1);
  await run.stop();
  assert.equal(table.takenOver, 0);
});

Deno.test("a lease is kept however long the work takes", async () => {
  const table = new Table(["1"]);
  const gate = Promise.withResolvers<void>();
  const run = start(table, async ({ id }) => {
    await gate.promise;
    return { kind: "done", result: id };
  }, { leaseMs: 600, pollIntervalMs: 40 });
  await new Promise((over) => setTimeout(over, 1_500));
  gate.resolve();
  await table.untilSettled(1);
  await run.stop();
  assert.equal(table.lapsed, 0);
});
