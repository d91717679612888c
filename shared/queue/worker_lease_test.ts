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

Deno.test("a row that is handed over after its lease was lost does not let later rows overtake it", async () => {
  const table = new Table(["a1"], (id) => id.slice(0, 1));
  const [handedOver, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let claims = Promise.resolve();
  const worked: string[] = [];
  const run = start(table, async ({ id }) => {
    worked.push(id);
    if (id === "c1") await end.promise; // in hand all the time, so its lease is kept
    if (id !== "b1" || worked.filter((one) => one === id).length > 1) {
      return { kind: "done", result: id };
    }
    await handedOver.promise;
    return { kind: "later", delayMs: 0 };
  }, { leaseMs: 30, claim: (limit, context) => claims.then(() => table.claim(limit, context)) });
  await table.untilSettled(1);
  await run.handover.write(1, async (lease) => {
    assert.ok(lease);
    const expired = new Promise<void>((over) => setTimeout(over, 50));
    claims = expired;
    const leased = table.writeLeased(["b1"], lease.token);
    table.write("c1");
    // The answer to the commit comes after a claim has leased the row again, together with the other.
    await table.until(() => worked.includes("b1") && worked.includes("c1"));
    return { result: undefined, leased, othersWait: false };
  });
  handedOver.resolve();
  table.write("b2");
  run.handover.wake.trigger();
  await table.until(() => worked.includes("b2"));
  end.resolve();
  await run.stop();
  assert.deepEqual(worked.filter((id) => id.startsWith("b")), ["b1", "b1", "b2"]);
});
