import type { Log } from "../process/log.ts";
import { pause, Wakeup } from "../process/signals.ts";
import type { Handover, Offer } from "./handover.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { Claimed, Job, Settlement } from "./job.ts";
import { Lanes } from "./lanes.ts";
import { type Finished, Lines } from "./lines.ts";
import { outcomeOf, settlementOf } from "./outcomes.ts";
import { type InHand, RowsInHand } from "./rows_in_hand.ts";
import { Unsettled } from "./unsettled.ts";
import { secondsSince, WorkerReport } from "./worker_report.ts";

// Claim → work → settle, for rows that wait in a table. A claim leases rows to this worker under a
// fresh token; each settle presents the token, so a worker that lost its lease changes nothing.

// While one batch is being worked on, one is being claimed and one settled.
const batchesInHand = 4;

// With more rows than this in lines, behind those under work, claims pass over the rows that would
// join, so that the backlog of a few keys does not keep the rows of other keys from being claimed.
// Such claims need not be many: they are made ten times per poll interval, and for new rows.
const batchesInLines = 2;

export class Worker<Row extends Claimed, Result> {
  readonly #job: Job<Row, Result>;
  readonly #abandon: AbortSignal;
  readonly #report: WorkerReport<Row, Result>;
  readonly #held: RowsInHand<Row>;
  readonly #heartbeat: Heartbeat<Row>;
  readonly #lanes: Lanes;
  readonly #lines: Lines<Row, Result>;
  readonly #unsettled: Unsettled<Row, Result>;
  readonly #capacity = new Wakeup();
  #handover: Handover<Row> | undefined;
  #destinationError: string | undefined; // set while the destination is unavailable
  #keepsUp = false; // the last claim succeeded and left no due row behind
  #passedOver = false; // claims have passed over rows that would have joined
  #joinsLater = false; // rows may join again as soon as few wait in lines
  #offered = 0;
  #isByDueTime = false;

  // After the end of a run, rows in hand may be worked on until `abandon` is aborted.
  constructor(job: Job<Row, Result>, log: Log, abandon: AbortSignal) {
    this.#job = job;
    this.#abandon = abandon;
    this.#report = new WorkerReport(job, log);
    this.#held = new RowsInHand(job);
    this.#heartbeat = new Heartbeat(this.#held, job, this.#report.table);
    this.#unsettled = new Unsettled(
      job,
      this.#held,
      this.#report,
      (settlements) => this.#settled(settlements),
    );
    this.#lanes = new Lanes(job, () => this.#handover?.wake.trigger());
    this.#lines = new Lines({
      work: (held) => {
        const { lane } = held.row;
        return lane === undefined ? this.#workOn(held) : this.#workInLane(held, lane);
      },
      settle: (finished) => this.#settle(finished),
    });
  }

  // Claims and works until the signal, then finishes the rows in hand.
  async run(handover: Handover<Row>, signal: AbortSignal): Promise<void> {
    this.#handover = handover;
    handover.taker = this;
    const ended = new AbortController();
    const heartbeat = this.#heartbeat.run(ended.signal);
    while (!signal.aborted) {
      const idleMs = await this.runOnce(signal);
      if (this.#destinationError) this.#report.destination.fails("work", this.#destinationError);
      else this.#report.destination.works("work");
      if (idleMs === 0) continue;
      // A new row is no reason to try an unavailable destination more often.
      if (this.#destinationError) await pause(idleMs, signal);
      else await handover.wake.wait(idleMs, signal);
    }
    handover.taker = undefined;
    handover.mayOffer.trigger();
    while (this.#held.size + this.#offered > 0 && !this.#abandon.aborted) {
      await this.#capacity.wait(1_000, this.#abandon);
    }
    await this.#releaseHeld();
    this.#lanes.close();
    ended.abort();
    await heartbeat;
  }

  // Claims one batch and starts on it; returns how long to wait before the next.
  async runOnce(signal: AbortSignal): Promise<number> {
    const { batchSize, pollIntervalMs } = this.#job;
    while (this.#room < 0) {
      await this.#capacity.wait(pollIntervalMs, signal);
      if (signal.aborted) return 0;
    }
    const probing = this.#destinationError !== undefined;
    const limit = probing ? 1 : batchSize; // one row is enough to find out whether the destination is back
    const dueAt = await this.#claim(limit);
    if (probing) return pollIntervalMs;
    const isFull = this.#joinsLater = this.#linesAreFull;
    const idleMs = Math.max(Math.ceil(dueAt - performance.now()), isFull ? pollIntervalMs / 10 : 0);
    return Math.min(idleMs, pollIntervalMs);
  }

  // A lease for rows that are about to be written, if this worker would start on them at once.
  offer(rows: number): Offer<Row> | undefined {
    const { worker, leaseMs } = this.#job;
    if (this.#room < 0 || !this.#keepsUp || this.#destinationError) return undefined;
    this.#offered += rows;
    const claim = this.#lines.begin();
    const leasedFrom = performance.now();
    return {
      lease: { worker, leaseMs, token: crypto.randomUUID() },
      take: (written) => {
        this.#offered -= rows;
        this.#start(claim, written, leasedFrom);
        this.#madeRoom();
      },
    };
  }

  // Below zero, no more rows are taken; else a whole batch may come, or whatever is written at once. Rows
  // that wait for their lane don't count: they must not hold up the rows of other lanes.
  get #room(): number {
    const inHand = this.#held.size - this.#lanes.waiting;
    return (batchesInHand - 1) * this.#job.batchSize - inHand - this.#offered;
  }

  #madeRoom(): void {
    this.#capacity.trigger();
    this.#handover?.mayOffer.trigger();
  }

  get #linesAreFull(): boolean {
    return this.#lines.waiting > batchesInLines * this.#job.batchSize;
  }

  // Returns when the next claim is due, by performance.now().
  async #claim(limit: number): Promise<number> {
    const claim = this.#lines.begin();
    let [rows, more]: [Row[], boolean] = [[], false];
    let [dueAt, leasedFrom] = [Infinity, 0];
    let nextDueMs: number | null | undefined;
    try {
      if (this.#held.anyRanOut) await this.#held.renew(); // so that we don't take over our own rows
      const passesOver = this.#linesAreFull;
      const context = {
        tokens: passesOver ? [] : this.#tokens(),
        lanes: this.#lanes.leftOut(),
        fromOldest: this.#passedOver && !passesOver,
      };
      leasedFrom = performance.now();
      ({ rows, more, nextDueMs } = await this.#job.claim(limit, context));
      this.#isByDueTime = nextDueMs !== undefined;
      dueAt = performance.now() + (nextDueMs ?? Infinity);
      this.#report.table.works("claim");
      this.#report.claimSeconds.observe(secondsSince(leasedFrom));
      this.#keepsUp = !more;
      this.#handover?.mayOffer.trigger();
      this.#passedOver = passesOver;
    } catch (error) {
      this.#keepsUp = false; // there may be a backlog, which new rows must not overtake
      this.#report.table.fails("claim", error);
    }
    const goingBack = this.#start(claim, rows, leasedFrom);
    if (goingBack.length > 0) await this.#untilBack(goingBack);
    return more || (this.#passedOver && !this.#linesAreFull) ? 0 : dueAt;
  }

  #tokens(): string[] {
    const rows = this.#held.rows().filter((row) =>
      this.#lines.mayBeJoined(row) && this.#held.hasAllOfToken(row)
    );
    return [...new Set(rows.map(({ token }) => token))];
  }

  #start(claim: number, rows: Row[], leasedFrom: number): Promise<unknown>[] {
    this.#report.claimed(rows);
    const held = this.#held.add(rows, leasedFrom);
    this.#report.inHand(this.#held.size);
    for (const { lane } of rows) this.#lanes.join(lane);
    return this.#lines.join(claim, held);
  }

  async #untilBack(goingBack: Promise<unknown>[]): Promise<void> {
    const areBack = new Wakeup();
    void Promise.all(goingBack).then(() => areBack.trigger());
    await areBack.wait(this.#job.pollIntervalMs, this.#abandon);
  }

  async #workInLane(held: InHand<Row>, lane: string): Promise<Settlement<Row, Result>> {
    if (!await this.#lanes.begin(lane)) return { row: held.row, kind: "released" };
    try {
      return await this.#workOn(held);
    } finally {
      this.#lanes.end(lane);
    }
  }

  async #workOn(held: InHand<Row>): Promise<Settlement<Row, Result>> {
    const { row } = held;
    const isLeased = this.#held.isLeased(held) ||
      await this.#heartbeat.isLeasedAgain(held, this.#abandon);
    if (!isLeased) return { row, kind: "released" };
    const retries = this.#job.retriesOf?.(row) ?? this.#job;
    if (row.attempts >= retries.maxAttempts) {
      const error = "Lease expired too often; this row may be crashing its worker";
      return { row, kind: "failed", error, attempted: false };
    }
    const outcome = await outcomeOf(row, this.#job, this.#report.workSeconds);
    this.#destinationError = outcome.kind === "unavailable" ? outcome.error : undefined;
    const settlement = settlementOf(row, outcome, retries);
    this.#pauseLane(settlement);
    return settlement;
  }

  #pauseLane(settlement: Settlement<Row, Result>): void {
    if (settlement.kind !== "released" || settlement.lane === undefined) return;
    void this.#lanes.pause(settlement.lane, settlement.delayMs ?? 0);
  }

  #settle(finished: Finished<Row, Result>): Promise<boolean> {
    this.#lanes.leave(finished.held.row.lane);
    return this.#unsettled.settle(finished, this.#abandon);
  }

  // The table has these outcomes now.
  #settled(settlements: Settlement<Row, Result>[]): void {
    this.#madeRoom();
    const putOff = settlements.filter((settlement) => "delayMs" in settlement);
    for (const one of putOff) this.#pauseLane(one); // so that it resumes when the row is due
    const joinsAgain = this.#joinsLater && this.#lines.waiting <= this.#job.batchSize;
    if (joinsAgain) this.#joinsLater = false;
    // A row that was put off may be the next that is due.
    if (joinsAgain || (putOff.length > 0 && this.#isByDueTime)) this.#handover?.wake.trigger();
  }

  async #releaseHeld(): Promise<void> {
    const rows = this.#held.dropAll();
    if (rows.length === 0) return;
    await this.#job.settle(rows.map((row) => ({ row, kind: "released" })))
      .catch((error) => this.#report.table.fails("release", error));
  }
}
