import assert from "node:assert/strict";
import fc from "fast-check";
import { Batch, BatchFull } from "./batch.ts";

interface Item {
  id: number;
  keys: string[];
  bad: boolean;
}

class BadItem extends Error {}

const items = fc.array(
  fc.record({
    keys: fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"), { maxLength: 3 }),
    bad: fc.boolean(),
  }),
).map((list) => list.map((item, id): Item => ({ id, ...item })));

const turn = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("each item gets its own outcome, and items that share a key never overlap", async () => {
  await fc.assert(fc.asyncProperty(items, fc.integer({ min: 1, max: 5 }), async (all, maxItems) => {
    const underWay = new Set<string>();
    const batch = new Batch({
      flush: async (some: Item[]) => {
        const keys = some.flatMap(({ keys }) => keys);
        assert.ok(some.length <= maxItems);
        assert.equal(new Set([...underWay, ...keys]).size, underWay.size + keys.length);
        for (const key of keys) underWay.add(key);
        await turn();
        for (const key of keys) underWay.delete(key);
        if (some.some(({ bad }) => bad)) throw new BadItem();
        return some.map(({ id }) => id);
      },
      keysOf: ({ keys }) => keys,
      mayBeOneItem: (error) => error instanceof BadItem,
      maxItems,
      maxFlushes: 2,
      maxWaiting: Infinity,
    });
    const outcomes = await Promise.allSettled(all.map((item) => batch.add(item)));
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === "fulfilled") assert.equal(outcome.value, i);
      else assert.ok(outcome.reason instanceof BadItem, String(outcome.reason));
      assert.equal(outcome.status === "rejected", all[i]?.bad);
    }
    assert.equal(batch.waiting, 0);
  }));
});

Deno.test("items of one key go in the order in which they came", async () => {
  const flushed: number[] = [];
  const batch = new Batch({
    flush: async (some: number[]) => {
      flushed.push(...some);
      await turn();
      return some;
    },
    keysOf: () => ["same"],
    maxItems: 10,
    maxFlushes: 2,
    maxWaiting: Infinity,
  });
  await Promise.all([1, 2, 3, 4, 5].map((item) => batch.add(item)));
  assert.deepEqual(flushed, [1, 2, 3, 4, 5]);
});

Deno.test("an item beyond the bound is refused at once", async () => {
  const gate = Promise.withResolvers<void>();
  const batch = new Batch({
    flush: async (some: number[]) => {
      await gate.promise;
      return some;
    },
    maxItems: 1,
    maxFlushes: 1,
    maxWaiting: 2,
  });
  const first = batch.add(1);
  await turn();
  assert.equal(batch.full, false);
  const waiting = [batch.add(2), batch.add(3)];
  assert.equal(batch.full, true);
  await assert.rejects(batch.add(4), BatchFull);
  gate.resolve();
  assert.deepEqual(await Promise.all([first, ...waiting]), [1, 2, 3]);
  assert.equal(batch.full, false);
});

Deno.test("trying items one by one ends at a failure that no single item causes", async () => {
  let flushes = 0;
  const batch = new Batch({
    flush: (_some: number[]): Promise<number[]> => {
      flushes++;
      return Promise.reject(flushes < 3 ? new BadItem("bad") : new Error("away"));
    },
    mayBeOneItem: (error) => error instanceof BadItem,
    maxItems: 10,
    maxFlushes: 1,
    maxWaiting: Infinity,
  });
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((item) => batch.add(item)));
  const reasons = outcomes.map((outcome) =>
    outcome.status === "rejected" && outcome.reason.message
  );
  assert.deepEqual(reasons, ["bad", "away", "away", "away"]);
  assert.equal(flushes, 3);
});

Deno.test("a flush without a result for every item is an error of each item", async () => {
  const batch = new Batch({
    flush: (some: number[]) => Promise.resolve(some.slice(1)),
    maxItems: 10,
    maxFlushes: 1,
    maxWaiting: Infinity,
  });
  const outcomes = await Promise.allSettled([1, 2].map((item) => batch.add(item)));
  assert.deepEqual(outcomes.map(({ status }) => status), ["rejected", "rejected"]);
});

Deno.test("an item that fails alone is not flushed again", async () => {
  let flushes = 0;
  const batch = new Batch({
    flush: (_some: number[]): Promise<number[]> => {
      flushes++;
      return Promise.reject(new BadItem());
    },
    mayBeOneItem: () => true,
    maxItems: 10,
    maxFlushes: 1,
    maxWaiting: Infinity,
  });
  await assert.rejects(batch.add(1), BadItem);
  assert.equal(flushes, 1);
});
