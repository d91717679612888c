// A worker on a table in memory, for its tests.
import assert from "node:assert/strict";
import { Handover } from "./handover.ts";
import type { Log } from "../process/log.ts";
import type { Claim, ClaimContext, Claimed, Job, Settlement } from "./job.ts";
import { Worker } from "./worker.ts";

export type Work = Job<Claimed, string>["work"];

interface Stored {
  id: string;
  key: string | null;
  lane?: string | undefined;
  attempts: number;
  dueAt: number; // by performance.now()
  lease: { token: string; until: number } | undefined;
  finished: "done" | "failed" | undefined;
}

// Rows as a table holds them, in the order in which they were written, and the claim, settle and
// heartbeat as the statements of a leased table do them.
export class Table {
  readonly limits: number[] = []; // of each claim
  readonly contexts: ClaimContext[] = []; // of each claim
  readonly settled: Settlement<Claimed, string>[] = [];
  failWith: Error | undefined; // settles only
  away = false;
  takenOver = 0;
  lapsed = 0; // leases that had run out when they were extended or settled
  failures = 0;
  settles = 0;
  refuses: string | undefined;
  once = false;
  leaseMs = 60_000;
  byDueTime = false;
  readonly #rows: Stored[] = [];
  readonly #keyOf: (id: string) => string | null;
  readonly #laneOf: (id: string) => string | undefined;

  constructor(
    ids: string[],
    keyOf: (id: string) => string | null = (id) => id,
    laneOf: (id: string) => string | undefined = () => undefined,
  ) {
    this.#keyOf = keyOf;
    this.#laneOf = laneOf;
    for (const id of ids) this.write(id);
  }

  row(id: string): Stored {
    return this.#rows.find((row) => row.id === id) as Stored;
  }

  get rows(): readonly Stored[] {
    return this.#rows;
  }

  write(id: string, dueInMs = 0): void {
    this.#rows.push({
      id,
      key: this.#keyOf(id),
      lane: this.#laneOf(id),
      attempts: 0,
      dueAt: performance.now() + dueInMs,
      lease: undefined,
      finished: undefined,
    });
  }

  // Writes new rows with a lease, except those behind unfinished ones.
  writeLeased(ids: string[], token: string): Claimed[] {
    const leased: Claimed[] = [];
    for (const id of ids) {
      const behind = this.#rows.some(({ key, finished }) => key === this.#keyOf(id) && !finished);
      this.write(id);
      if (!behind) leased.push(this.#lease(this.row(id), token));
    }
    return leased;
  }

  // Another worker takes the row over; returns its token.
  steal(id: string): string {
    const lease = { token: `other-${id}`, until: Infinity };
    this.row(id).lease = lease;
    return lease.token;
  }

  claim(limit: number, context: ClaimContext): Promise<Claim<Claimed>> {
    if (this.away) return Promise.reject(new Error("Connection terminated"));
    this.limits.push(limit);
    this.contexts.push(context);
    const now = performance.now();
    const token = crypto.randomUUID();
    const due = this.#claimable(context, now);
    const rows = due.slice(0, limit).map((row) => this.#lease(row, token));
    const next = this.byDueTime ? { nextDueMs: this.#nextDueMs(now) } : {};
    return Promise.resolve({ rows, more: due.length >= limit, ...next });
  }

  // A row waits for each earlier one of its key that is not claimed with it and not in hand.
  #claimable({ tokens, lanes }: ClaimContext, now: number): Stored[] {
    const blocked = new Set<string | null>();
    return this.#rows.filter(({ key, lane, dueAt, lease, finished }) => {
      if (finished || (lease && lease.until > now && tokens.includes(lease.token))) return false;
      const isDue = lease ? lease.until <= now : dueAt <= now;
      const isOpen = lane === undefined || !lanes.includes(lane);
      if (isDue && isOpen && !blocked.has(key)) return true;
      if (key !== null) blocked.add(key);
      return false;
    });
  }

  #lease(row: Stored, token: string): Claimed {
    const takenOver = row.lease !== undefined;
    this.takenOver += Number(takenOver);
    row.lease = { token, until: performance.now() + this.leaseMs };
    const { id, key, lane, attempts } = row;
    return { id, key, lane, token, attempts, takenOver };
  }

  settle(settlements: Settlement<Claimed, string>[]): Promise<Set<string>> {
    this.settles++;
    if (this.failWith) {
      this.failures++;
      return Promise.reject(this.failWith);
    }
    if (settlements.some(({ row }) => row.id === this.refuses)) {
      return Promise.reject(new Error("invalid input syntax"));
    }
    const owned = settlements.filter(({ row }) => this.#owns(row));
    this.settled.push(...owned);
    this.#countLapsed(owned.map(({ row }) => row));
    for (const settlement of owned) this.#write(settlement);
    return Promise.resolve(new Set(owned.map(({ row }) => row.id)));
  }

  #write(settlement: Settlement<Claimed, string>): void {
    const { kind, row: { id } } = settlement;
    const row = this.row(id);
    row.lease = undefined;
    if (kind === "done" || kind === "failed") {
      row.finished = kind;
      return;
    }
    row.attempts += Number(kind === "retry");
    const delayMs = this.once ? Infinity : settlement.delayMs ?? 0;
    row.dueAt = performance.now() + delayMs;
  }

  extend(rows: Claimed[]): Promise<Set<string>> {
    if (this.away) return Promise.reject(new Error("Connection terminated"));
    const owned = rows.filter((row) => this.#owns(row));
    this.#countLapsed(owned);
    for (const { id, token } of owned) {
      this.row(id).lease = { token, until: performance.now() + this.leaseMs };
    }
    return Promise.resolve(new Set(owned.map(({ id }) => id)));
  }

  #nextDueMs(now: number): number | null {
    const future = this.#rows.filter(({ dueAt, finished }) => !finished && dueAt > now);
    return future.length === 0 ? null : Math.min(...future.map(({ dueAt }) => dueAt - now));
  }

  #owns({ id, token }: Claimed): boolean {
    return this.row(id).lease?.token === token;
  }

  #countLapsed(rows: Claimed[]): void {
    const now = performance.now();
    this.lapsed += rows.filter(({ id }) => (this.row(id).lease?.until ?? now) < now).length;
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

type More = { once?: boolean } & Partial<Job<Claimed, string>>;

export function start(table: Table, work: Work, { once = false, ...more }: More = {}): Run {
  table.once = once;
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
      pollIntervalMs: 5,
      maxAttempts: 3,
      backoff: { baseMs: 10, maxMs: 10, minMs: 0, jitterMin: 1, jitterMax: 1 },
      claim: (limit, context) => table.claim(limit, context),
      work,
      settle: (settlements) => table.settle(settlements),
      extend: (rows) => table.extend(rows),
      stepOf: () => ({ name: "test", kind: "client" }),
      traceparentOf: () => null,
      about: () => ({}),
      ...more,
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
