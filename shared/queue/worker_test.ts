import assert from "node:assert/strict";
import type { Outcome } from "./job.ts";
import { start, Table, turns } from "./worker_testing.ts";

Deno.test("each outcome becomes the settlement of its row", async () => {
  const table = new Table(["done", "retry", "failed", "last", "dead", "broken"]);
  table.row("last").attempts = 2;
  table.row("dead").attempts = 3;
  const outcomes: Record<string, Outcome<string>> = {
    done: { kind: "done", result: "ok" },
    retry: { kind: "retry", error: "later" },
    failed: { kind: "failed", error: "never" },
    last: { kind: "retry", error: "still not" },
  };
  const worked: string[] = [];
  const run = start(table, ({ id }) => {
    worked.push(id);
    const outcome = outcomes[id];
    if (!outcome) throw new Error("a bug");
    return Promise.resolve(outcome);
  });
  await table.untilSettled(6);
  await run.stop();
  const settled = Object.fromEntries(table.settled.map(({ row, ...rest }) => [row.id, rest]));
  assert.deepEqual(settled, {
    done: { kind: "done", result: "ok" },
    retry: { kind: "retry", error: "later", delayMs: 10 },
    failed: { kind: "failed", error: "never", attempted: true },
    last: { kind: "failed", error: "still not", attempted: true },
    dead: {
      kind: "failed",
      error: "Lease expired too often; this row may be crashing its worker",
      attempted: false,
    },
    broken: { kind: "retry", error: "a bug", delayMs: 10 },
  });
  assert.ok(!worked.includes("dead"));
});

Deno.test("while the destination is unavailable one row is tried, at the pace of polling", async () => {
  const table = new Table(Array.from({ length: 40 }, (_, i) => `${i}`));
  let away = true;
  const run = start(
    table,
    ({ id }) =>
      Promise.resolve(away ? { kind: "unavailable", error: "away" } : { kind: "done", result: id }),
  );
  await table.until(() => table.limits.length >= 6);
  assert.deepEqual(new Set(table.limits.slice(2)), new Set([1]));
  assert.ok(table.settled.every(({ kind }) => kind === "released"));
  away = false;
  await table.until(() => table.settled.filter(({ kind }) => kind === "done").length === 40);
  await run.stop();
  assert.deepEqual(run.log.map((line) => line.replace(/:.*/, "")), [
    "warn test paused, destination unavailable",
    "info test resumed",
  ]);
});

Deno.test("outcomes are kept while the table is unavailable, and the outage is logged once", async () => {
  const table = new Table(["1", "2", "3"]);
  table.failWith = new Error("Connection terminated");
  let worked = 0;
  const run = start(table, ({ id }) => {
    worked++;
    return Promise.resolve({ kind: "done", result: id });
  });
  await table.until(() => table.failures >= 4);
  table.failWith = undefined;
  await table.untilSettled(3);
  await run.stop();
  assert.equal(worked, 3);
  assert.deepEqual(run.log.map((line) => line.replace(/:.*/, "")), [
    "error test can't use its table",
    "info test can use its table again",
  ]);
});

Deno.test("a row that the table refuses does not hold up the other rows of its batch", async () => {
  const table = new Table(["good1", "bad", "good2"]);
  table.refuses = "bad";
  const run = start(table, ({ id }) => Promise.resolve({ kind: "done", result: id }));
  await table.untilSettled(2);
  table.refuses = undefined;
  await table.untilSettled(3);
  await run.stop();
  assert.deepEqual(table.settled.map(({ row }) => row.id), ["good1", "good2", "bad"]);
});

Deno.test("a stop waits for the rows in hand, and claims no more", async () => {
  const table = new Table(["1", "2"]);
  const gate = Promise.withResolvers<void>();
  const run = start(table, async ({ id }) => {
    await gate.promise;
    return { kind: "done", result: id };
  });
  await table.until(() => table.limits.length > 0);
  const stopped = run.stop();
  const claims = table.limits.length;
  await turns(5);
  gate.resolve();
  await stopped;
  assert.deepEqual(table.settled.map(({ kind }) => kind), ["done", "done"]);
  assert.equal(table.limits.length, claims);
});

Deno.test("abandoned rows are released, and the later rows of their keys are not begun", async () => {
  const table = new Table(["a1", "a2"], () => "a");
  const gate = Promise.withResolvers<void>();
  const worked: string[] = [];
  const run = start(table, async ({ id }) => {
    worked.push(id);
    await gate.promise;
    return { kind: "done", result: id };
  });
  await table.until(() => worked.length > 0);
  run.abandon();
  await run.stop();
  gate.resolve();
  await turns(5);
  assert.deepEqual(table.settled.map(({ row, kind }) => [row.id, kind]), [
    ["a1", "released"],
    ["a2", "released"],
  ]);
  assert.deepEqual(worked, ["a1"]);
  assert.equal(table.settles, 1, "their outcomes are not settled");
});

Deno.test("new rows are handed over only after a claim that left no backlog; a failed claim does not count", async () => {
  const table = new Table(["1"]);
  const run = start(table, ({ id }) => Promise.resolve({ kind: "done", result: id }));
  const isTaken = () => {
    const offer = run.handover.taker?.offer(1);
    offer?.take([]);
    return offer !== undefined;
  };
  assert.ok(!isTaken(), "nothing is known before the first claim");
  await table.until(isTaken);
  table.away = true;
  await table.until(() => run.log.length > 0);
  assert.ok(!isTaken());
  table.away = false;
  await table.until(isTaken);
  await run.stop();
});

Deno.test("while the table is unavailable a settle is tried as a whole and not row by row", async () => {
  const table = new Table(Array.from({ length: 10 }, (_, i) => `${i}`));
  table.failWith = new Error("Connection terminated");
  const run = start(
    table,
    ({ id }) => Promise.resolve({ kind: "done", result: id }),
    { pollIntervalMs: 60_000 },
  );
  await table.until(() => table.failures > 0);
  await turns(20);
  const { failures } = table;
  table.failWith = undefined;
  run.abandon();
  await run.stop();
  assert.ok(failures <= 2, `${failures} statements were tried for 10 rows`);
});
