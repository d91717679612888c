import assert from "node:assert/strict";
import { start, Table, turns, type Work } from "./worker_testing.ts";

const done: Work = ({ id }) => Promise.resolve({ kind: "done", result: id });

Deno.test("a row is worked on when it is due, without waiting for the poll", async () => {
  const table = new Table([], () => null);
  const due = [40, 80, 81, 120];
  const from = performance.now();
  for (const ms of due) table.write(`${ms}`, ms);
  const late: number[] = [];
  const run = start(table, (row) => {
    late.push(performance.now() - from - Number(row.id));
    return done(row);
  }, { pollIntervalMs: 60_000, nextDueMs: () => table.nextDueMs() });
  await table.untilSettled(due.length);
  await run.stop();
  assert.ok(late.every((ms) => ms > -1 && ms < 10_000), `${late}`);
});

Deno.test("a row that comes due during a claim that did not find it is not left to the poll", async () => {
  const table = new Table([], () => null);
  const run = start(table, done, {
    pollIntervalMs: 60_000,
    nextDueMs: () => {
      if (table.rows.length === 0) table.write("1", 5);
      return table.nextDueMs();
    },
    claim: async (limit, context) => {
      const claim = await table.claim(limit, context);
      await turns(20);
      return claim;
    },
  });
  await table.untilSettled(1);
  await run.stop();
});

Deno.test("a new row that is due earlier ends the sleep until a later one", async () => {
  const table = new Table([], () => null);
  table.write("late", 60_000);
  const run = start(table, done, { pollIntervalMs: 60_000, nextDueMs: () => table.nextDueMs() });
  await table.until(() => table.limits.length >= 2);
  await turns(5);
  const claims = table.limits.length;
  table.write("early", 30);
  run.handover.wake.trigger();
  await table.untilSettled(1);
  await run.stop();
  assert.equal(table.settled[0]?.row.id, "early");
  assert.ok(table.limits.length - claims < 8, "the worker sleeps until then");
});

Deno.test("while the table can't say when the next row is due, the worker polls", async () => {
  const table = new Table([], () => null);
  let away = true;
  const run = start(table, done, {
    nextDueMs: () => away ? Promise.reject(new Error("away")) : table.nextDueMs(),
  });
  await table.until(() => run.log.length > 0);
  away = false;
  table.write("1");
  await table.untilSettled(1);
  await run.stop();
  assert.deepEqual(run.log, [
    "error test can't use its table: away",
    "info test can use its table again",
  ]);
});
