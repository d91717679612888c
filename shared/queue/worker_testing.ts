// A worker on a table in memory, for its tests.
import assert from "node:assert/strict";
import { Handover } from "./handover.ts";
import type { Log } from "../process/log.ts";
import type { Claimed, Job, Settlement } from "./job.ts";
import { Worker } from "./worker.ts";

export type Work = Job<Claimed, string>["work"];

// Rows as a table holds them: due, leased, or settled.
export class Table {
  readonly limits: number[] = []; // of each claim
  readonly settled: Settlement<Claimed, string>[] = [];
  readonly stolen = new Set<string>();
  failWith: Error | undefined; // settles only
  away = false;
  takenOver = 0;
  lapsed = 0; // leases that had run out when they were extended or settled
  failures = 0;
  refuses: string | undefined;
  once = false;
  readonly #rows: Claimed[];
  readonly #due: Claimed[];
  readonly #leases = new Map<Claimed, number>(); // row → when it runs out
  leaseMs = 60_000;

  constructor(ids: string[], keyOf: (id: string) => string = (id) => id) {
    this.#rows = ids.map((id) => ({ id, key: keyOf(id), attempts: 0, takenOver: false }));
    this.#due = [...this.#rows];
  }

  row(id: string): Claimed {
    return this.#rows.find((row) => row.id === id) as Claimed;
  }

  write(id: string): void {
    const row = { id, key: id, attempts: 0, takenOver: false };
    this.#rows.push(row);
    this.#due.push(row);
  }

  claim(limit: number): Promise<Claimed[]> {
    if (this.away) return Promise.reject(new Error("Connection terminated"));
    this.limits.push(limit);
    const now = performance.now();
    this.takenOver += this.#leases.values().filter((until) => until <= now).toArray().length;
    const rows = this.#due.splice(0, limit);
    for (const row of rows) this.#leases.set(row, now + this.leaseMs);
    return Promise.resolve(rows);
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
    this.#countLapsed(owned.map(({ row }) => row));
    for (const { row } of owned) this.#leases.delete(row);
    const released = owned.filter(({ kind }) => kind === "released");
    if (!this.once) this.#due.push(...released.map(({ row }) => row));
    return Promise.resolve(new Set(owned.map(({ row }) => row.id)));
  }

  extend(rows: Claimed[]): Promise<Set<string>> {
    if (this.away) return Promise.reject(new Error("Connection terminated"));
    const owned = rows.filter(({ id }) => !this.stolen.has(id));
    this.#countLapsed(owned);
    for (const row of owned) this.#leases.set(row, performance.now() + this.leaseMs);
    return Promise.resolve(new Set(owned.map(({ id }) => id)));
  }

  #countLapsed(rows: Claimed[]): void {
    const now = performance.now();
    this.lapsed += rows.filter((row) => (this.#leases.get(row) ?? now) < now).length;
  }

  untilSettled(count: number): Promise<void> {
    return this.until(() => this.settled.length >= count);
  }

  async until(condition: () => boolean): Promise<void> {
    for (let i = 0; i < 1_000 && !condition(); i++) await turns(1);
    assert.ok(condition());
  }
}

export interface Run {
  log: string[];
  handover: Handover<Claimed>;
  abandon(): void;
  stop(): Promise<void>;
}

export function start(
  table: Table,
  work: Work,
  more: { once?: boolean; leaseMs?: number; pollIntervalMs?: number } = {},
): Run {
  table.once = more.once ?? false;
  table.leaseMs = more.leaseMs ?? table.leaseMs;
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
      worker: "test",
      batchSize: 10,
      leaseMs: table.leaseMs,
      pollIntervalMs: more.pollIntervalMs ?? 5,
      maxAttempts: 3,
      backoff: { baseMs: 10, maxMs: 10, minMs: 0, jitterMin: 1, jitterMax: 1 },
      claim: (limit) => table.claim(limit),
      work,
      settle: (settlements) => table.settle(settlements),
      extend: (rows) => table.extend(rows),
      step: { name: "test", kind: "client" },
      traceparentOf: () => null,
      about: () => ({}),
    },
    { info: at("info"), warn: at("warn"), error: at("error") } as unknown as Log,
    abandon.signal,
  );
  const handover = new Handover<Claimed>();
  const running = worker.run(handover, stop.signal);
  let isLate = false;
  return {
    log,
    handover,
    abandon: () => abandon.abort(),
    stop: async () => {
      stop.abort();
      const late = setTimeout(() => {
        isLate = true;
        abandon.abort();
      }, 5_000);
      await running;
      clearTimeout(late);
      assert.ok(!isLate, "a run does not end by itself");
    },
  };
}

export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((next) => setTimeout(next, 1));
}
