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

Deno.test("a second flush begins with as many items as are under way", async () => {
  const flushes: { size: number; end: () => void }[] = [];
  const batch = new Batch({
    flush: async (some: number[]) => {
      await new Promise<void>((end) => flushes.push({ size: some.length, end }));
      return some;
    },
    maxItems: 10,
    maxFlushes: 2,
    maxWaiting: Infinity,
  });
  const add = async (count: number) => {
    const added = Array.from({ length: count }, (_, i) => batch.add(i));
    await Promise.resolve();
    return added;
  };
  const sizes = () => flushes.map(({ size }) => size);
  const all = await add(4);
  all.push(...await add(3));
  assert.deepEqual(sizes(), [4]);
  all.push(...await add(1));
  assert.deepEqual(sizes(), [4, 4]);
  all.push(...await add(2));
  flushes[0]?.end();
  await all[0];
  assert.deepEqual(sizes(), [4, 4]);
  flushes[1]?.end();
  await turn();
  assert.deepEqual(sizes(), [4, 4, 2]);
  flushes[2]?.end();
  await Promise.all(all);
});

Deno.test("after many items a batch rests, until half of a flush is ready or for the time that it may", async () => {
  const sizes: number[] = [];
  const batch = new Batch({
    flush: (some: number[]) => {
      sizes.push(some.length);
      return Promise.resolve(some);
    },
    maxItems: 10_000,
    maxFlushes: 2,
    maxWaiting: Infinity,
    restMs: 1_000,
  });
  const add = (count: number) => Promise.all(Array.from({ length: count }, (_, i) => batch.add(i)));
  await add(2);
  await add(4_000);
  const few = add(3);
  await turn();
  assert.deepEqual(sizes, [2, 4_000]);
  const many = add(5_000);
  await turn();
  assert.deepEqual(sizes, [2, 4_000, 5_003]);
  await Promise.all([few, many]);
  await add(1);
});

Deno.test("how many flushes may be under way is asked again before each", async () => {
  let most = 2;
  let [underWay, highest] = [0, 0];
  const batch = new Batch({
    flush: async (some: number[]) => {
      highest = Math.max(highest, ++underWay);
      await turn();
      underWay--;
      return some;
    },
    maxItems: 1,
    maxFlushes: () => most,
    maxWaiting: Infinity,
  });
  const all = () => Promise.all([1, 2, 3, 4].map((item) => batch.add(item)));
  await all();
  assert.equal(highest, 2);
  [most, highest] = [1, 0];
  await all();
  assert.equal(highest, 1);
});

Deno.test("a slow flush does not hold up later items for long", async () => {
  const gate = Promise.withResolvers<void>();
  const batch = new Batch({
    flush: async (some: string[]) => {
      if (some.includes("slow")) await gate.promise;
      return some;
    },
    maxItems: 10,
    maxFlushes: 2,
    maxWaiting: Infinity,
  });
  const slow = [batch.add("slow"), batch.add("slow")];
  await turn();
  assert.equal(await batch.add("quick"), "quick");
  gate.resolve();
  await Promise.all(slow);
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
