import { backoffMs } from "./backoff.ts";
import { Batch } from "./batch.ts";
import { reasonOf } from "../process/reason.ts";
import type { Handover, Offer } from "./handover.ts";
import type { Claimed, Job, Outcome, Settlement } from "../process/job.ts";
import type { Log } from "../process/log.ts";
import { isUnavailable } from "../postgres/postgres.ts";
import { type InHand, RowsInHand } from "./rows_in_hand.ts";
import { pause, Wakeup } from "../process/signals.ts";
import { inSpan, linked, tracing } from "../telemetry/tracing.ts";
import { secondsSince, WorkerReport } from "./worker_report.ts";

// Claim → work → settle, for rows that wait in a table. A claim leases rows to this worker under a
// fresh token; each settle presents the token, so a worker that lost its lease leaves no effect.

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
  readonly #room = new Wakeup();
  readonly #settling: Batch<Finished<Row, Result>, void>;
  readonly #report: WorkerReport<Row, Result>;
  #wake: Wakeup | undefined;
  #wakeWhenSettled = false;
  #otherSideAway: string | undefined; // why
  #keepsUp = false; // the last claim was answered, and left nothing
  #offered = 0;

  // `abandon` bounds how long rows in hand may still be worked on after the end of a run.
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

  // Works until the signal, then finishes what is in hand.
  async run(handover: Handover<Row>, signal: AbortSignal): Promise<void> {
    const wake = this.#wake = handover.wake;
    handover.taker = this;
    const ended = new AbortController();
    const heartbeat = this.#keepLeases(ended.signal);
    while (!signal.aborted) {
      const idleMs = await this.runOnce(signal);
      if (this.#otherSideAway) this.#report.otherSide.fails("work", this.#otherSideAway);
      else this.#report.otherSide.works("work");
      if (idleMs === 0) continue;
      // New rows are no reason to ask the other side more often whether it is back.
      if (this.#otherSideAway) await pause(idleMs, signal);
      else await wake.wait(idleMs, signal);
    }
    handover.taker = undefined;
    while (this.#held.size + this.#offered > 0 && !this.#abandon.aborted) {
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
    const probing = this.#otherSideAway !== undefined;
    const limit = probing ? 1 : batchSize; // one row finds out whether it is back
    // This claim finds no rows behind those in hand, but the next one may, once these are settled.
    this.#wakeWhenSettled = this.#held.size > 0;
    const claimed = await this.#claim(limit);
    return claimed === limit && !probing ? 0 : pollIntervalMs;
  }

  // A lease for rows that are about to be written, if it would start on them at once.
  offer(rows: number): Offer<Row> | undefined {
    const { worker, leaseMs, batchSize } = this.#job;
    const room = (batchesInHand - 1) * batchSize - this.#held.size - this.#offered;
    if (rows > room || !this.#keepsUp || this.#otherSideAway) return undefined;
    this.#offered += rows;
    const leasedFrom = performance.now();
    return {
      lease: { worker, leaseMs, token: crypto.randomUUID() },
      take: (written) => {
        this.#offered -= rows;
        this.#report.claimed(written);
        this.#start(this.#held.add(written, leasedFrom));
        this.#room.trigger();
      },
    };
  }

  async #claim(limit: number): Promise<number> {
    try {
      if (this.#held.anyRanOut) await this.#held.renew(); // or we would take over our own rows
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
    const lines = Map.groupBy(claimed, ({ row }) => row.key);
    for (const line of lines.values()) void this.#workOn(line);
  }

  // A row that has to wait holds back those behind it; one that failed for good does not.
  async #workOn(line: InHand<Row>[]): Promise<void> {
    let waits = false;
    for (const held of line) {
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
      const error = "Its lease ran out too often: it may end its worker";
      return { row, kind: "failed", error, attempted: false };
    }
    const outcome = await this.#outcomeOf(row);
    this.#otherSideAway = outcome.kind === "unavailable" ? outcome.error : undefined;
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

  // What is thrown is a bug, most likely one that only this row meets.
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

  // Outcomes are kept until the table took them: what was done must not be done again.
  #finish(finished: Finished<Row, Result>): void {
    const { held } = finished;
    if (!this.#held.has(held)) return; // given back meanwhile
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
    this.#room.trigger();
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

  // A row that somebody else took over meanwhile is not worked on.
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
