import { type Backoff, backoffMs } from "./backoff.ts";
import { Batch } from "./batch.ts";
import { reasonOf } from "./errors.ts";
import type { Log } from "./log.ts";
import { workerClaimed, workerLeaseLost, workerSettled, workerTakenOver } from "./metrics.ts";
import { Bell, pause } from "./signals.ts";

// Claim → work → settle, for rows that wait in a table. A claim leases rows to this worker under a
// fresh token; each settle presents the token, so a worker that lost its lease leaves no effect.

export interface Claimed {
  id: string;
  key: string; // rows of one key are worked on one after the other, in the order of the claim
  attempts: number; // failed ones so far; a lease that ran out is one of them
  takenOver: boolean;
}

export type Outcome<Result> =
  | { kind: "done"; result: Result }
  | { kind: "retry"; error: string } // this row failed, later it may not
  | { kind: "failed"; error: string } // this row fails whenever it is tried
  | { kind: "unavailable"; error: string }; // the other side is away: no row is to blame

export type Settlement<Row, Result> =
  | { row: Row; kind: "done"; result: Result }
  | { row: Row; kind: "retry"; error: string; delayMs: number }
  | { row: Row; kind: "failed"; error: string; attempted: boolean }
  | { row: Row; kind: "released" };

export interface Job<Row extends Claimed, Result> {
  name: string;
  batchSize: number;
  leaseMs: number;
  pollIntervalMs: number;
  maxAttempts: number;
  backoff: Backoff;
  claim(limit: number): Promise<Row[]>;
  work(row: Row): Promise<Outcome<Result>>;
  // Returns the ids of the rows that were still leased to this worker.
  settle(settlements: Settlement<Row, Result>[]): Promise<Set<string>>;
  extend(rows: Row[]): Promise<void>;
}

// While one batch is being worked on, one is being claimed and one settled.
const batchesInHand = 4;

export class Worker<Row extends Claimed, Result> {
  readonly #job: Job<Row, Result>;
  readonly #log: Log;
  readonly #abandon: AbortSignal;
  readonly #held = new Map<string, Row>();
  readonly #room = new Bell();
  readonly #settling: Batch<Settlement<Row, Result>, boolean>;
  #otherSideAway = false;
  #failing = false;

  // `abandon` bounds how long rows in hand may still be worked on after the end of a run.
  constructor(job: Job<Row, Result>, log: Log, abandon: AbortSignal) {
    this.#job = job;
    this.#log = log;
    this.#abandon = abandon;
    this.#settling = new Batch({
      flush: (settlements) => this.#settle(settlements),
      maxItems: job.batchSize * 2,
      maxFlushes: 2,
      maxWaiting: Infinity, // bounded by what is in hand
    });
  }

  // Works until the signal, then finishes what is in hand.
  async run(wake: Bell, signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const heartbeat = this.#keepLeases(ended.signal);
    while (!signal.aborted) {
      if (this.#otherSideAway) await pause(this.#job.pollIntervalMs, signal);
      const idleMs = await this.runOnce(signal);
      if (idleMs > 0) await wake.wait(idleMs, signal);
    }
    while (this.#held.size > 0 && !this.#abandon.aborted) {
      await this.#room.wait(1_000, this.#abandon);
    }
    await this.#releaseHeld();
    ended.abort();
    await heartbeat;
  }

  // Claims one batch and starts on it; returns how long to wait before the next.
  async runOnce(signal: AbortSignal): Promise<number> {
    const { batchSize, pollIntervalMs } = this.#job;
    while (this.#held.size > (batchesInHand - 1) * batchSize) {
      await this.#room.wait(pollIntervalMs, signal);
      if (signal.aborted) return 0;
    }
    const limit = this.#otherSideAway ? 1 : batchSize; // one row finds out whether it is back
    const rows = await this.#claim(limit);
    this.#start(rows);
    return rows.length === limit ? 0 : pollIntervalMs;
  }

  async #claim(limit: number): Promise<Row[]> {
    const { name } = this.#job;
    try {
      const rows = await this.#job.claim(limit);
      workerClaimed.inc({ worker: name }, rows.length);
      this.#report(undefined);
      return rows;
    } catch (error) {
      this.#report(error);
      return [];
    }
  }

  #start(rows: Row[]): void {
    const lines = new Map<string, Row[]>();
    for (const row of rows) {
      this.#held.set(row.id, row);
      const line = lines.get(row.key);
      if (line) line.push(row);
      else lines.set(row.key, [row]);
    }
    for (const line of lines.values()) void this.#workOn(line);
  }

  // A row that has to wait holds back those behind it; one that failed for good does not.
  async #workOn(line: Row[]): Promise<void> {
    let held = false;
    for (const row of line) {
      const settlement: Settlement<Row, Result> = held
        ? { row, kind: "released" }
        : await this.#workOnOne(row);
      held = settlement.kind === "retry" || settlement.kind === "released";
      void this.#finish(settlement);
    }
  }

  async #workOnOne(row: Row): Promise<Settlement<Row, Result>> {
    const { name, maxAttempts, backoff } = this.#job;
    if (row.takenOver) workerTakenOver.inc({ worker: name });
    if (row.attempts >= maxAttempts) {
      const error = "Its lease ran out too often: it may end its worker";
      return { row, kind: "failed", error, attempted: false };
    }
    const outcome = await this.#job.work(row);
    this.#otherSideAway = outcome.kind === "unavailable";
    switch (outcome.kind) {
      case "done":
        return { row, ...outcome };
      case "failed":
        return { row, ...outcome, attempted: true };
      case "unavailable":
        return { row, kind: "released" };
      case "retry": {
        const attempt = row.attempts + 1;
        return attempt < maxAttempts
          ? { row, ...outcome, delayMs: backoffMs(backoff, attempt) }
          : { row, kind: "failed", error: outcome.error, attempted: true };
      }
    }
  }

  async #finish(settlement: Settlement<Row, Result>): Promise<void> {
    const worker = this.#job.name;
    const { row, kind } = settlement;
    const owned = await this.#settling.add(settlement);
    if (owned) workerSettled.inc({ worker, outcome: kind });
    else workerLeaseLost.inc({ worker });
    if (kind === "failed" && owned) {
      this.#log.error("{worker} gave up on {id}: {error}", {
        worker,
        id: row.id,
        error: settlement.error,
      });
    }
    this.#held.delete(row.id);
    this.#room.ring();
  }

  // Outcomes are kept until the database took them: what was done must not be done again.
  async #settle(settlements: Settlement<Row, Result>[]): Promise<boolean[]> {
    for (;;) {
      try {
        const owned = await this.#job.settle(settlements);
        this.#report(undefined);
        return settlements.map(({ row }) => owned.has(row.id));
      } catch (error) {
        this.#report(error);
        if (this.#abandon.aborted) return settlements.map(() => false);
        await pause(this.#job.pollIntervalMs, this.#abandon);
      }
    }
  }

  async #keepLeases(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#job.leaseMs / 3, signal);
      if (this.#held.size === 0) continue;
      await this.#job.extend([...this.#held.values()]).catch((error) => this.#report(error));
    }
  }

  async #releaseHeld(): Promise<void> {
    const rows = [...this.#held.values()];
    this.#held.clear();
    if (rows.length === 0) return;
    await this.#job.settle(rows.map((row) => ({ row, kind: "released" })))
      .catch((error) => this.#report(error));
  }

  // One line when it begins to fail and one when it works again, however often it was tried.
  #report(error: unknown): void {
    const worker = this.#job.name;
    if (error !== undefined && !this.#failing) {
      this.#log.error("{worker} can't use its table: {error}", { worker, error: reasonOf(error) });
    }
    if (error === undefined && this.#failing) {
      this.#log.info("{worker} can use its table again", { worker });
    }
    this.#failing = error !== undefined;
  }
}
