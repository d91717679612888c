import { pause } from "../process/signals.ts";
import { isUnavailable } from "../postgres/postgres.ts";
import { linked } from "../telemetry/tracing.ts";
import { Batch } from "./batch.ts";
import type { Claimed, Job, Settlement } from "./job.ts";
import type { Finished } from "./lines.ts";
import type { RowsInHand } from "./rows_in_hand.ts";
import { secondsSince, type WorkerReport } from "./worker_report.ts";

// The outcomes that the table does not have yet. They are kept until it has them, so that finished
// work is not repeated.
export class Unsettled<Row extends Claimed, Result> {
  readonly #job: Job<Row, Result>;
  readonly #held: RowsInHand<Row>;
  readonly #report: WorkerReport<Row, Result>;
  readonly #onSettled: (settlements: Settlement<Row, Result>[]) => void;
  readonly #batch: Batch<Finished<Row, Result>, boolean>;

  constructor(
    job: Job<Row, Result>,
    held: RowsInHand<Row>,
    report: WorkerReport<Row, Result>,
    onSettled: (settlements: Settlement<Row, Result>[]) => void,
  ) {
    this.#job = job;
    this.#held = held;
    this.#report = report;
    this.#onSettled = onSettled;
    this.#batch = new Batch({
      flush: (finished) => this.#settle(finished),
      mayBeOneItem: (error) => !isUnavailable(error),
      maxItems: job.batchSize * 2,
      maxFlushes: 2,
      restMs: 20, // nobody waits for an outcome
      maxWaiting: Infinity, // bounded by what is in hand
    });
  }

  // Resolves when the table has the outcome; false if the lease was lost before.
  async settle(finished: Finished<Row, Result>, abandon: AbortSignal): Promise<boolean> {
    const { held } = finished;
    while (this.#held.has(held)) { // else it was released meanwhile
      try {
        return await this.#batch.add(finished);
      } catch (error) {
        this.#report.table.fails(held.row.id, error);
        await pause(this.#job.pollIntervalMs, abandon);
      }
    }
    return false;
  }

  async #settle(finished: Finished<Row, Result>[]): Promise<boolean[]> {
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
    this.#onSettled(settlements);
    return finished.map(({ held }) => owned.has(held.row.id));
  }
}
