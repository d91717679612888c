import assert from "node:assert/strict";
import { start, Table, turns, type Work } from "./worker_testing.ts";

const done: Work = ({ id }) => Promise.resolve({ kind: "done", result: id });

Deno.test("a row is worked on when it is due, without waiting for the poll", async () => {
  const table = byDueTime();
  const due = [40, 80, 81, 120];
  const from = performance.now();
  for (const ms of due) table.write(`${ms}`, ms);
  const late: number[] = [];
  const run = start(table, (row) => {
    late.push(performance.now() - from - Number(row.id));
    return done(row);
  }, { pollIntervalMs: 60_000 });
  await table.untilSettled(due.length);
  await run.stop();
  assert.ok(late.every((ms) => ms > -1 && ms < 10_000), `${late}`);
});

Deno.test("a row that comes due during a claim that did not find it is not left to the poll", async () => {
  const table = byDueTime();
  const run = start(table, done, {
    pollIntervalMs: 60_000,
    claim: async (limit, context) => {
      if (table.rows.length === 0) table.write("1", 5);
      const claim = await table.claim(limit, context);
      await turns(20);
      return claim;
    },
  });
  await table.untilSettled(1);
  await run.stop();
});

Deno.test("a new row that is due earlier ends the sleep until a later one", async () => {
  const table = byDueTime();
  table.write("late", 60_000);
  const run = start(table, done, { pollIntervalMs: 60_000 });
  await table.until(() => table.limits.length >= 1);
  await turns(5);
  const claims = table.limits.length;
  table.write("early", 30);
  run.handover.wake.trigger();
  await table.untilSettled(1);
  await run.stop();
  assert.equal(table.settled[0]?.row.id, "early");
  assert.ok(table.limits.length - claims < 8, "the worker sleeps until then");
});

function byDueTime(): Table {
  const table = new Table([], () => null);
  table.byDueTime = true;
  return table;
}
