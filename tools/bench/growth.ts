// The same drains with tables full of finished rows, with a transaction held open, and with several
// replicas at once. The limit of each is the same drain without.
import pg from "pg";
import type { Bench, DrainOptions, StartDrain, StartWork, Work } from "./work.ts";

export function fullOf(start: StartDrain, name: string): StartWork {
  return (bench) =>
    compare(start, bench, {
      with: { name: `${name}_full`, finished: bench.quick ? 300_000 : 3_000_000 },
      without: { name: `${name}_empty` },
      what: "the same in empty tables",
      target: 0.85,
    });
}

export function replicasOf(start: StartDrain, name: string, replicas: number): StartWork {
  return (bench) =>
    compare(start, bench, {
      with: { name: `${name}_by_${replicas}`, replicas },
      without: { name: `${name}_beside_${replicas}` },
      what: "the same by one",
      target: 0.9,
    });
}

interface Comparison {
  with: DrainOptions;
  without: DrainOptions;
  what: string;
  target: number;
}

async function compare(start: StartDrain, bench: Bench, comparison: Comparison): Promise<Work> {
  const work = await start(bench, comparison.with);
  const limit = await start(bench, comparison.without);
  return {
    unit: "rows/s",
    atMost: {},
    measure: async () => ({ perSecond: await work.run(), figures: {} }),
    limits: [{
      name: comparison.what,
      what: "",
      target: comparison.target,
      measure: () => limit.run(),
    }],
    [Symbol.asyncDispose]: async () => {
      await work[Symbol.asyncDispose]();
      await limit[Symbol.asyncDispose]();
    },
  };
}

/** Since before the drain: so nothing that is finished during it can be cleaned away. */
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
    return {
      unit: "rows/s",
      atMost: {},
      measure: async () => ({ perSecond: await whileHeld(), figures: {} }),
      limits: [{
        name: "the same without the transaction",
        what: "",
        target: 0.5,
        measure: () => drain.run(),
      }],
      [Symbol.asyncDispose]: () => drain[Symbol.asyncDispose](),
    };
  };
}
