// The drains of the other files, with tables full of finished rows, with a transaction held open,
// by several replicas at once, and of few keys. The limit of each is the same drain without that.
import pg from "pg";
import type { Drain, DrainOptions, StartDrain, StartWork, Work } from "./work.ts";

export function fullOf(start: StartDrain, name: string): StartWork {
  return async (bench) => {
    const finished = bench.quick ? 300_000 : 3_000_000;
    const full = await start(bench, { name: `${name}_full`, finished });
    const empty = await start(bench, { name: `${name}_empty` });
    return compare(() => full.run(), () => empty.run(), "the same in empty tables", 0.85, [
      full,
      empty,
    ]);
  };
}

export function beforeFutureOf(start: StartDrain, name: string): StartWork {
  return async (bench) => {
    const future = bench.quick ? 100_000 : 1_000_000;
    const beside = await start(bench, { name: `${name}_future`, future });
    const alone = await start(bench, { name: `${name}_alone` });
    return compare(() => beside.run(), () => alone.run(), "the same without them", 0.9, [
      beside,
      alone,
    ]);
  };
}

export function replicasOf(start: StartDrain, name: string, replicas: number): StartWork {
  return async (bench) => {
    const many = await start(bench, { name: `${name}_by_${replicas}`, replicas });
    const one = await start(bench, { name: `${name}_beside_${replicas}` });
    return compare(() => many.run(), () => one.run(), "the same by one", 0.9, [many, one]);
  };
}

/** The other way to do the same work; neither is wanted faster, so nothing is required. */
export function insteadOf(start: StartDrain, usual: StartDrain, name: string): StartWork {
  return async (bench) => {
    const other = await start(bench, { name });
    const drain = await usual(bench, { name: `${name}_usual` });
    return compare(() => other.run(), () => drain.run(), "the same without", 0, [other, drain]);
  };
}

/** The transaction begins before the drain, so vacuum can't remove anything that the drain leaves. */
export function heldOf(start: StartDrain, name: string): StartWork {
  return async (bench) => {
    const drain = await start(bench, { name: `${name}_held` });
    const whileHeld = async () => {
      const holder = new pg.Client({ connectionString: drain.database.ownerUrl });
      await holder.connect();
      try {
        await holder.query("begin isolation level repeatable read");
        await holder.query("select from schema_migrations");
        return await drain.run();
      } finally {
        await holder.end();
      }
    };
    return compare(whileHeld, () => drain.run(), "the same without the transaction", 0.5, [drain]);
  };
}

const hotKeys = 40;
// Of a shorter interval much of the load would be the polls of relays that wait for each other.
const pollInterval = "100ms";

/** Rows of one key are worked on one after the other, so few keys leave little to do at once. */
export function hotOf(
  start: StartDrain,
  name: string,
  options: Pick<DrainOptions, "replicas" | "wiped"> = {},
): StartWork {
  return async (bench) => {
    const items = bench.quick ? 20_000 : 50_000;
    const drain = await start(bench, { name, items, pollInterval, ...options });
    const manyKeys = items / 2;
    return compare(
      () => drain.run(hotKeys),
      () => drain.run(manyKeys),
      `the same of ${manyKeys.toLocaleString("en")} keys, not ${hotKeys}`,
      0.5,
      [drain],
    );
  };
}

function compare(
  run: () => Promise<number>,
  without: () => Promise<number>,
  name: string,
  target: number,
  started: Drain[],
): Work {
  return {
    unit: "rows/s",
    atMost: {},
    measure: async () => ({ perSecond: await run(), figures: {} }),
    limits: [{ name, what: "", target, measure: without }],
    [Symbol.asyncDispose]: async () => {
      for (const drain of started) await drain[Symbol.asyncDispose]();
    },
  };
}
