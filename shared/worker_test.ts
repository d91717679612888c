import assert from "node:assert/strict";
import type { Log } from "./log.ts";
import { Bell } from "./signals.ts";
import { type Claimed, type Job, type Outcome, type Settlement, Worker } from "./worker.ts";

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
      error: "Its lease ran out too often: it may end its worker",
      attempted: false,
    },
    broken: { kind: "retry", error: "a bug", delayMs: 10 },
  });
  assert.ok(!worked.includes("dead"));
});

Deno.test("rows of one key are worked on one after the other, other keys meanwhile", async () => {
  const table = new Table(["a1", "b1", "a2", "b2", "a3"], (id) => id.slice(0, 1));
  const done: string[] = [];
  const underWay = new Set<string>();
  let together = 0;
  const run = start(table, async ({ id, key }) => {
    assert.ok(!underWay.has(key));
    underWay.add(key);
    together = Math.max(together, underWay.size);
    await turns(3);
    underWay.delete(key);
    done.push(id);
    return { kind: "done", result: id };
  });
  await table.untilSettled(5);
  await run.stop();
  assert.equal(together, 2);
  assert.deepEqual(done.filter((id) => id.startsWith("a")), ["a1", "a2", "a3"]);
  assert.deepEqual(done.filter((id) => id.startsWith("b")), ["b1", "b2"]);
});

Deno.test("a row to be tried again holds back those behind it, a failed one does not", async () => {
  const table = new Table(["r1", "r2", "f1", "f2"], (id) => id.slice(0, 1));
  const run = start(table, ({ id }) => {
    if (id === "r1") return Promise.resolve({ kind: "retry", error: "x" });
    if (id === "f1") return Promise.resolve({ kind: "failed", error: "x" });
    return Promise.resolve({ kind: "done", result: id });
  }, { once: true });
  await table.untilSettled(4);
  await run.stop();
  const kinds = Object.fromEntries(table.settled.map(({ row, kind }) => [row.id, kind]));
  assert.deepEqual(kinds, { r1: "retry", r2: "released", f1: "failed", f2: "done" });
});

Deno.test("while the other side is away one row finds out, at the pace of polling", async () => {
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
  const said = run.log.map((line) => line.replace(/:.*/, ""));
  assert.deepEqual(said, ["warn test waits for the other side", "info test goes on"]);
});

Deno.test("outcomes are kept while the table is away, and are told once", async () => {
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

Deno.test("a row that the table refuses does not hold up those beside it", async () => {
  const table = new Table(["good1", "bad", "good2"]);
  table.refuses = "bad";
  const run = start(table, ({ id }) => Promise.resolve({ kind: "done", result: id }));
  await table.untilSettled(2);
  table.refuses = undefined;
  await table.untilSettled(3);
  await run.stop();
  assert.deepEqual(table.settled.map(({ row }) => row.id), ["good1", "good2", "bad"]);
});

Deno.test("the end waits for what is in hand, and then no row is claimed", async () => {
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

Deno.test("what is abandoned is given back, and what stood behind it not begun", async () => {
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
});

Deno.test("a row that was lost before its turn is not worked on", async () => {
  const table = new Table(["a1", "a2"], () => "a");
  const gate = Promise.withResolvers<void>();
  const worked: string[] = [];
  const run = start(table, async ({ id }) => {
    worked.push(id);
    await gate.promise;
    return { kind: "done", result: id };
  }, { leaseMs: 20 });
  await table.until(() => worked.length > 0);
  table.stolen.add("a2");
  await new Promise((over) => setTimeout(over, 30));
  gate.resolve();
  await table.untilSettled(1);
  await run.stop();
  assert.deepEqual(worked, ["a1"]);
});

type Work = Job<Claimed, string>["work"];

// Rows as a table holds them: due, leased, or settled.
class Table {
  readonly limits: number[] = []; // of each claim
  readonly settled: Settlement<Claimed, string>[] = [];
  readonly stolen = new Set<string>();
  failWith: Error | undefined;
  failures = 0;
  refuses: string | undefined;
  once = false;
  readonly #rows: Claimed[];
  readonly #due: Claimed[];

  constructor(ids: string[], keyOf: (id: string) => string = (id) => id) {
    this.#rows = ids.map((id) => ({ id, key: keyOf(id), attempts: 0, takenOver: false }));
    this.#due = [...this.#rows];
  }

  row(id: string): Claimed {
    return this.#rows.find((row) => row.id === id) as Claimed;
  }

  claim(limit: number): Promise<Claimed[]> {
    this.limits.push(limit);
    return Promise.resolve(this.#due.splice(0, limit));
  }

  settle(settlements: Settlement<Claimed, string>[]): Promise<Set<string>> {
    if (this.failWith) {
      this.failures++;
      return Promise.reject(this.failWith);
    }
    if (settlements.some(({ row }) => row.id === this.refuses)) {
      return Promise.reject(new Error("invalid input syntax"));
    }
    const owned = settlements.filter(({ row }) => !this.stolen.has(row.id));
    this.settled.push(...owned);
    const released = owned.filter(({ kind }) => kind === "released");
    if (!this.once) this.#due.push(...released.map(({ row }) => row));
    return Promise.resolve(new Set(owned.map(({ row }) => row.id)));
  }

  extend(rows: Claimed[]): Promise<Set<string>> {
    return Promise.resolve(new Set(rows.map(({ id }) => id).filter((id) => !this.stolen.has(id))));
  }

  untilSettled(count: number): Promise<void> {
    return this.until(() => this.settled.length >= count);
  }

  async until(condition: () => boolean): Promise<void> {
    for (let i = 0; i < 1_000 && !condition(); i++) await turns(1);
    assert.ok(condition());
  }
}

interface Run {
  log: string[];
  abandon(): void;
  stop(): Promise<void>;
}

function start(table: Table, work: Work, more: { once?: boolean; leaseMs?: number } = {}): Run {
  table.once = more.once ?? false;
  const log: string[] = [];
  const at = (level: string) => (message: string, properties: Record<string, unknown>) =>
    void log.push(
      `${level} ${message.replaceAll(/\{(\w+)\}/g, (_, name) => String(properties[name]))}`,
    );
  const stop = new AbortController();
  const abandon = new AbortController();
  const worker = new Worker<Claimed, string>(
    {
      name: "test",
      batchSize: 10,
      leaseMs: more.leaseMs ?? 60_000,
      pollIntervalMs: 5,
      maxAttempts: 3,
      backoff: { baseMs: 10, maxMs: 10, minMs: 0, jitterMin: 1, jitterMax: 1 },
      claim: (limit) => table.claim(limit),
      work,
      settle: (settlements) => table.settle(settlements),
      extend: (rows) => table.extend(rows),
    },
    { info: at("info"), warn: at("warn"), error: at("error") } as unknown as Log,
    abandon.signal,
  );
  const running = worker.run(new Bell(), stop.signal);
  return {
    log,
    abandon: () => abandon.abort(),
    stop: async () => {
      stop.abort();
      await running;
    },
  };
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((next) => setTimeout(next, 1));
}
