import assert from "node:assert/strict";
import type { Handover, NewLease } from "./handover.ts";
import type { Claimed } from "./job.ts";
import { start, Table, turns, type Work } from "./worker_testing.ts";

const done: Work = ({ id }) => Promise.resolve({ kind: "done", result: id });

Deno.test("rows that are written as leased are worked on without being claimed", async () => {
  const table = new Table([]);
  const run = start(table, done);
  await leaseIsOffered(run.handover);
  const result = await write(run.handover, table, ["1", "2"]);
  await table.untilSettled(2);
  await run.stop();
  assert.equal(result, "written");
  assert.deepEqual(table.settled.map(({ row, kind }) => [row.id, kind]), [
    ["1", "done"],
    ["2", "done"],
  ]);
});

Deno.test("the worker is not woken when all new rows were handed over", async () => {
  const table = new Table([]);
  const run = start(table, done, { pollIntervalMs: 60_000 });
  await leaseIsOffered(run.handover);
  const claims = table.limits.length;
  await write(run.handover, table, ["1"]);
  await table.untilSettled(1);
  await turns(10);
  assert.equal(table.limits.length, claims);
  await run.stop();
});

Deno.test("the worker is woken to claim the new rows that were not handed over", async () => {
  const table = new Table([]);
  const run = start(table, done, { pollIntervalMs: 60_000 });
  await leaseIsOffered(run.handover);
  for (const isBusy of [false, true]) { // then the new rows are offered no lease
    const claims = table.limits.length;
    const written = { result: 0, leased: [], othersWait: true };
    const offer = isBusy ? run.handover.taker?.offer(31) : undefined;
    await run.handover.write(1, () => Promise.resolve(written));
    offer?.take([]);
    await table.until(() => table.limits.length > claims);
  }
  await run.stop();
});

Deno.test("no lease is offered while the worker has as many rows as it would start on, or behind a backlog", async () => {
  const table = new Table([]);
  const run = start(table, done);
  await leaseIsOffered(run.handover);
  const offer = run.handover.taker?.offer(31);
  assert.equal(await offeredFor(run.handover, 1), undefined);
  offer?.take([]);
  assert.ok(await offeredFor(run.handover, 1));
  await run.stop();

  const gate = Promise.withResolvers<void>();
  const backlog = new Table(Array.from({ length: 100 }, (_, i) => `${i}`));
  const behind = start(backlog, async ({ id }) => {
    await gate.promise;
    return { kind: "done", result: id };
  });
  await backlog.until(() => backlog.limits.length > 1);
  assert.equal(await offeredFor(behind.handover, 1), undefined);
  gate.resolve();
  await behind.stop();
});

Deno.test("a writer that waits gets a lease as soon as there is room, and none when its time is over", async () => {
  const table = new Table([]);
  const run = start(table, done);
  await leaseIsOffered(run.handover);
  const offer = run.handover.taker?.offer(31);
  const within = (ms: number) =>
    run.handover.writeWithin(
      ms,
      1,
      (lease) => Promise.resolve({ result: lease, leased: [], othersWait: false }),
    );
  assert.equal(await within(1), undefined);
  const [first, second] = [within(60_000), within(60_000)];
  await turns(5);
  offer?.take([]);
  assert.ok(await first);
  assert.ok(await second);
  await run.stop();
  const afterTheEnd = within(60_000).then((lease) => lease ?? "no lease");
  const soon = turns(20);
  assert.equal(await Promise.race([afterTheEnd, soon]), "no lease");
  await soon;
});

Deno.test("a full claim counts as a backlog, even if the worker has capacity for more", async () => {
  const table = new Table([]);
  const offers: boolean[] = [];
  const run = start(table, ({ id }) => {
    const offer = run.handover.taker?.offer(1);
    offer?.take([]);
    offers.push(offer !== undefined);
    return Promise.resolve({ kind: "done", result: id });
  }, { pollIntervalMs: 60_000 });
  await leaseIsOffered(run.handover);
  for (let i = 0; i < 10; i++) table.write(`${i}`);
  run.handover.wake.trigger();
  await table.untilSettled(10);
  await run.stop();
  assert.deepEqual(offers, Array(10).fill(false));
});

Deno.test("no lease is offered while the destination is unavailable, or after the end", async () => {
  const table = new Table(["1"]);
  const run = start(table, () => Promise.resolve({ kind: "unavailable", error: "away" }));
  await table.untilSettled(1);
  assert.equal(await offeredFor(run.handover, 1), undefined);
  await run.stop();
  assert.equal(await offeredFor(run.handover, 1), undefined);
});

Deno.test("a stop waits for a commit that is under way, and for its rows", async () => {
  const table = new Table([]);
  const run = start(table, done);
  await leaseIsOffered(run.handover);
  const commit = Promise.withResolvers<void>();
  const writing = write(run.handover, table, ["1"], commit.promise);
  const stopped = run.stop();
  await turns(5);
  commit.resolve();
  await Promise.all([writing, stopped]);
  assert.deepEqual(table.settled.map(({ kind }) => kind), ["done"]);
});

Deno.test("a failed commit returns its offer", async () => {
  const table = new Table([]);
  const run = start(table, done);
  await leaseIsOffered(run.handover);
  for (let i = 0; i < 100; i++) {
    await assert.rejects(run.handover.write(10, () => Promise.reject(new Error("no commit"))));
  }
  assert.ok(await offeredFor(run.handover, 10));
  await run.stop();
});

function write(
  handover: Handover<Claimed>,
  table: Table,
  ids: string[],
  committed: Promise<void> = Promise.resolve(),
): Promise<string> {
  return handover.write(ids.length, async (lease) => {
    assert.ok(lease);
    await committed;
    const leased = table.writeLeased(ids, lease.token);
    return { result: "written", leased, othersWait: leased.length < ids.length };
  });
}

function offeredFor(handover: Handover<Claimed>, rows: number): Promise<NewLease | undefined> {
  return handover.write(
    rows,
    (lease) => Promise.resolve({ result: lease, leased: [], othersWait: false }),
  );
}

/** After the first claim found nothing left. */
async function leaseIsOffered(handover: Handover<Claimed>): Promise<void> {
  while (!await offeredFor(handover, 1)) await turns(1);
}
