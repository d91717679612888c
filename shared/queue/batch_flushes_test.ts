// When a flush begins.
import assert from "node:assert/strict";
import { Batch } from "./batch.ts";

const turn = () => new Promise((resolve) => setTimeout(resolve));

async function add(batch: Batch<number, number>, count: number): Promise<Promise<number>[]> {
  const added = Array.from({ length: count }, (_, i) => batch.add(i));
  await Promise.resolve();
  return added;
}

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
  const sizes = () => flushes.map(({ size }) => size);
  const all = await add(batch, 4);
  all.push(...await add(batch, 3));
  assert.deepEqual(sizes(), [4]);
  all.push(...await add(batch, 1));
  assert.deepEqual(sizes(), [4, 4]);
  all.push(...await add(batch, 2));
  flushes[0]?.end();
  await all[0];
  assert.deepEqual(sizes(), [4, 4]);
  flushes[1]?.end();
  await turn();
  assert.deepEqual(sizes(), [4, 4, 2]);
  flushes[2]?.end();
  await Promise.all(all);
});

Deno.test("beside many items a second flush may need even more", async () => {
  const sizes: number[] = [];
  const gate = Promise.withResolvers<void>();
  const batch = new Batch({
    flush: async (some: number[]) => {
      sizes.push(some.length);
      await gate.promise;
      return some;
    },
    maxItems: 40,
    besideMany: 20,
    maxFlushes: 2,
    maxWaiting: Infinity,
  });
  const all = [...await add(batch, 12), ...await add(batch, 19)];
  assert.deepEqual(sizes, [12]);
  all.push(...await add(batch, 1));
  assert.deepEqual(sizes, [12, 20]);
  gate.resolve();
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
