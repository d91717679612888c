import { backoffMs } from "./backoff.ts";
import { Batch } from "./batch.ts";
import { reasonOf } from "../process/reason.ts";
import type { Handover, Offer } from "./handover.ts";
import type { Claimed, Job, Outcome, Settlement } from "./job.ts";
import type { Log } from "../process/log.ts";
import { isUnavailable } from "../postgres/postgres.ts";
import { type InHand, RowsInHand } from "./rows_in_hand.ts";
import { pause, Wakeup } from "../process/signals.ts";
import { inSpan, linked, tracing } from "../telemetry/tracing.ts";
import { secondsSince, WorkerReport } from "./worker_report.ts";

// Claim → work → settle, for rows that wait in a table. A claim leases rows to this worker under a
// fresh token; each settle presents the token, so a worker that lost its lease changes nothing.

interface Finished<Row, Result> {
  held: InHand<Row>;
  settlement: Settlement<Row, Result>;
}

// While one batch is being worked on, one is being claimed and one settled.
const batchesInHand = 4;

export class Worker<Row extends Claimed, Result> {
  readonly #job: Job<Row, Result>;
  readonly #abandon: AbortSignal;
  readonly #held: RowsInHand<Row>;
  readonly #capacity = new Wakeup();
  readonly #settling: Batch<Finished<Row, Result>, void>;
  readonly #report: WorkerReport<Row, Result>;
  #wake: Wakeup | undefined;
  #wakeWhenSettled = false;
  #destinationError: string | undefined; // set while the destination is unavailable
  #keepsUp = false; // the last claim succeeded and left no due row behind
  #offered = 0;

  // After the end of a run, rows in hand may be worked on until `abandon` is aborted.
  constructor(job: Job<Row, Result>, log: Log, abandon: AbortSignal) {
    this.#job = job;
    this.#abandon = abandon;
    this.#held = new RowsInHand(job);
    this.#report = new WorkerReport(job, log);
    this.#settling = new Batch({
      flush: (finished) => this.#settle(finished),
      mayBeOneItem: (error) => !isUnavailable(error),
      maxItems: job.batchSize * 2,
      maxFlushes: 2,
      maxWaiting: Infinity, // bounded by what is in hand
    });
  }

  // Claims and works until the signal, then finishes the rows in hand.
  async run(handover: Handover<Row>, signal: AbortSignal): Promise<void> {
    const wake = this.#wake = handover.wake;
    handover.taker = this;
    const ended = new AbortController();
    const heartbeat = this.#keepLeases(ended.signal);
    while (!signal.aborted) {
      const idleMs = await this.runOnce(signal);
      if (this.#destinationError) this.#report.destination.fails("work", this.#destinationError);
      else this.#report.destination.works("work");
      if (idleMs === 0) continue;
      // A new row is no reason to try an unavailable destination more often.
      if (this.#destinationError) await pause(idleMs, signal);
      else await wake.wait(idleMs, signal);
    }
    handover.taker = undefined;
    while (this.#held.size + this.#offered > 0 && !this.#abandon.aborted) {
      await this.#capacity.wait(1_000, this.#abandon);
    }
    await this.#releaseHeld();
    ended.abort();
    await heartbeat;
  }

  // Claims one batch and starts on it; returns how long to wait before the next.
  async runOnce(signal: AbortSignal): Promise<number> {
    const { batchSize, pollIntervalMs } = this.#job;
    while (this.#held.size > (batchesInHand - 1) * batchSize) {
      await this.#capacity.wait(pollIntervalMs, signal);
      if (signal.aborted) return 0;
    }
    const probing = this.#destinationError !== undefined;
    const limit = probing ? 1 : batchSize; // one row is enough to find out whether the destination is back
    // Skips rows whose predecessors are in hand; the next claim finds them once these are settled.
    this.#wakeWhenSettled = this.#held.size > 0;
    const claimed = await this.#claim(limit);
    return claimed === limit && !probing ? 0 : pollIntervalMs;
  }

  // A lease for rows that are about to be written, if this worker would start on them at once.
  offer(rows: number): Offer<Row> | undefined {
    const { worker, leaseMs, batchSize } = this.#job;
    const capacity = (batchesInHand - 1) * batchSize - this.#held.size - this.#offered;
    if (rows > capacity || !this.#keepsUp || this.#destinationError) return undefined;
    this.#offered += rows;
    const leasedFrom = performance.now();
    return {
      lease: { worker, leaseMs, token: crypto.randomUUID() },
      take: (written) => {
        this.#offered -= rows;
        this.#report.claimed(written);
        this.#start(this.#held.add(written, leasedFrom));
        this.#capacity.trigger();
      },
    };
  }

  async #claim(limit: number): Promise<number> {
    try {
      if (this.#held.anyRanOut) await this.#held.renew(); // so that we don't take over our own rows
      const leasedFrom = performance.now();
      const rows = await this.#job.claim(limit);
      this.#report.table.works("claim");
      this.#report.claimSeconds.observe(secondsSince(leasedFrom));
      this.#report.claimed(rows);
      this.#keepsUp = rows.length < limit;
      this.#start(this.#held.add(rows, leasedFrom));
      return rows.length;
    } catch (error) {
      this.#keepsUp = false; // there may be a backlog, which new rows must not overtake
      this.#report.table.fails("claim", error);
      return 0;
    }
  }

  #start(claimed: InHand<Row>[]): void {
    this.#report.inHand(this.#held.size);
    const byKey = Map.groupBy(claimed, ({ row }) => row.key);
    for (const rows of byKey.values()) void this.#workOn(rows);
  }

  // A row that has to wait holds back the later rows of its key; one that failed for good does not.
  async #workOn(rows: InHand<Row>[]): Promise<void> {
    let waits = false;
    for (const held of rows) {
      waits ||= !(this.#held.isLeased(held) || await this.#isLeasedAgain(held));
      const settlement: Settlement<Row, Result> = waits
        ? { row: held.row, kind: "released" }
        : await this.#workOnOne(held.row);
      waits = settlement.kind === "retry" || settlement.kind === "released";
      this.#finish({ held, settlement });
    }
  }

  async #workOnOne(row: Row): Promise<Settlement<Row, Result>> {
    const { maxAttempts, backoff } = this.#job;
    if (row.attempts >= maxAttempts) {
      const error = "Lease expired too often; this row may be crashing its worker";
      return { row, kind: "failed", error, attempted: false };
    }
    const outcome = await this.#outcomeOf(row);
    this.#destinationError = outcome.kind === "unavailable" ? outcome.error : undefined;
    switch (outcome.kind) {
      case "done":
        return { row, kind: "done", result: outcome.result };
      case "failed":
        return { row, kind: "failed", error: outcome.error, attempted: true };
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

  // Expected outcomes are returned. An exception is a bug, most likely one of only this row.
  async #outcomeOf(row: Row): Promise<Outcome<Result>> {
    const { step, traceparentOf } = this.#job;
    const from = performance.now();
    try {
      if (!tracing) return await this.#job.work(row);
      return await inSpan(step, traceparentOf(row), (parent) => this.#job.work(row, parent));
    } catch (error) {
      return { kind: "retry", error: reasonOf(error) };
    } finally {
      this.#report.workSeconds.observe(secondsSince(from));
    }
  }

  // An outcome is kept until the table has it, so that finished work is not repeated.
  #finish(finished: Finished<Row, Result>): void {
    const { held } = finished;
    if (!this.#held.has(held)) return; // released meanwhile
    this.#settling.add(finished).catch(async (error) => {
      this.#report.table.fails(held.row.id, error);
      await pause(this.#job.pollIntervalMs, this.#abandon);
      this.#finish(finished);
    });
  }

  async #settle(finished: Finished<Row, Result>[]): Promise<void[]> {
    const settlements = finished.map(({ settlement }) => settlement);
    const from = performance.now();
    const owned = await linked(
      `settle ${this.#job.name}`,
      () => settlements.map(({ row }) => this.#job.traceparentOf(row)),
      () => this.#job.settle(settlements),
    );
    this.#report.settleSeconds.observe(secondsSince(from));
    this.#report.settled(settlements, owned);
    for (const { held } of finished) {
      this.#held.drop(held);
      this.#report.table.works(held.row.id);
    }
    this.#report.inHand(this.#held.size);
    this.#capacity.trigger();
    if (this.#wakeWhenSettled && settlements.some(({ kind }) => kind !== "released")) {
      this.#wakeWhenSettled = false;
      this.#wake?.trigger();
    }
    return Array.from(finished, () => undefined);
  }

  async #keepLeases(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#job.leaseMs / 3, signal);
      await this.#renewLeases();
    }
  }

  // False if another worker has taken the row over meanwhile.
  async #isLeasedAgain(held: InHand<Row>): Promise<boolean> {
    while (this.#held.ranOut(held) && !this.#abandon.aborted) {
      if (!await this.#renewLeases()) await pause(this.#job.pollIntervalMs, this.#abandon);
    }
    return this.#held.owns(held) && !this.#abandon.aborted;
  }

  async #renewLeases(): Promise<boolean> {
    try {
      await this.#held.renew();
      this.#report.table.works("heartbeat");
      return true;
    } catch (error) {
      this.#report.table.fails("heartbeat", error);
      return false;
    }
  }

  async #releaseHeld(): Promise<void> {
    const rows = this.#held.dropAll();
    if (rows.length === 0) return;
    await this.#job.settle(rows.map((row) => ({ row, kind: "released" })))
      .catch((error) => this.#report.table.fails("release", error));
  }
}
