// The drains of the other files, with tables full of finished rows, with a transaction held open,
// and by several replicas at once. The limit of each is the same drain without that.
import pg from "pg";
import type { Drain, StartDrain, StartWork, Work } from "./work.ts";

export function fullOf(start: StartDrain, name: string): StartWork {
  return async (bench) => {
    const finished = bench.quick ? 300_000 : 3_000_000;
    const full = await start(bench, { name: `${name}_full`, finished });
    const empty = await start(bench, { name: `${name}_empty` });
    return compare(() => full.run(), empty, "the same in empty tables", 0.85, [full, empty]);
  };
}

export function replicasOf(start: StartDrain, name: string, replicas: number): StartWork {
  return async (bench) => {
    const many = await start(bench, { name: `${name}_by_${replicas}`, replicas });
    const one = await start(bench, { name: `${name}_beside_${replicas}` });
    return compare(() => many.run(), one, "the same by one", 0.9, [many, one]);
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
    return compare(whileHeld, drain, "the same without the transaction", 0.5, [drain]);
  };
}

function compare(
  run: () => Promise<number>,
  without: Drain,
  name: string,
  target: number,
  started: Drain[],
): Work {
  return {
    unit: "rows/s",
    atMost: {},
    measure: async () => ({ perSecond: await run(), figures: {} }),
    limits: [{ name, what: "", target, measure: () => without.run() }],
    [Symbol.asyncDispose]: async () => {
      for (const drain of started) await drain[Symbol.asyncDispose]();
    },
  };
}
