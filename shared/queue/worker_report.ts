import type { Counter, Gauge } from "prom-client";
import type { Series } from "../telemetry/histogram.ts";
import type { Claimed, Job, Settlement } from "./job.ts";
import type { Log } from "../process/log.ts";
import {
  counter,
  countersBy,
  fromZero,
  gauge,
  histogram,
  shortSeconds,
} from "../telemetry/metrics.ts";
import { Trouble } from "../process/trouble.ts";

const claimed = counter("kenri_worker_claimed_total", "rows claimed or handed over", ["worker"]);
const takenOver = counter(
  "kenri_worker_lease_expired_total",
  "rows claimed because an earlier lease had expired",
  ["worker"],
);
const leaseLost = counter(
  "kenri_worker_lease_lost_total",
  "settles that changed nothing because the lease was lost",
  ["worker"],
);
const settled = counter(
  "kenri_worker_settled_total",
  "rows settled: `done`, `retry`, `failed` for good, `released` without an attempt",
  ["worker", "outcome"],
);
const phases = histogram(
  "kenri_worker_phase_seconds",
  "duration of `claim` and `settle` for a batch, and of `work` for a row",
  shortSeconds,
  ["worker", "phase"],
);
const inHand = gauge(
  "kenri_worker_in_hand_current",
  "rows in hand: claimed and not settled",
  ["worker"],
);

type Kind = Settlement<unknown, unknown>["kind"];
const kinds: Kind[] = ["done", "retry", "failed", "released"];

// What a worker reports: metrics of all it does, and a log line for each problem and for each row
// that failed for good.
export class WorkerReport<Row extends Claimed, Result> {
  readonly destination: Trouble;
  readonly table: Trouble;
  readonly claimSeconds: Series;
  readonly workSeconds: Series;
  readonly settleSeconds: Series;
  readonly #job: Job<Row, Result>;
  readonly #log: Log;
  readonly #claimed: Counter.Internal;
  readonly #takenOver: Counter.Internal;
  readonly #leaseLost: Counter.Internal;
  readonly #settled: Record<Kind, Counter.Internal>;
  readonly #inHand: Gauge.Internal<"worker">;

  constructor(job: Job<Row, Result>, log: Log) {
    const worker = job.name;
    this.#job = job;
    this.#log = log;
    this.destination = new Trouble(
      (error) => log.warn("{worker} paused, destination unavailable: {error}", { worker, error }),
      () => log.info("{worker} resumed", { worker }),
    );
    this.table = new Trouble(
      (error) => log.error("{worker} can't use its table: {error}", { worker, error }),
      () => log.info("{worker} can use its table again", { worker }),
    );
    this.claimSeconds = phases.labels(worker, "claim");
    this.workSeconds = phases.labels(worker, "work");
    this.settleSeconds = phases.labels(worker, "settle");
    this.#claimed = fromZero(claimed.labels(worker));
    this.#takenOver = fromZero(takenOver.labels(worker));
    this.#leaseLost = fromZero(leaseLost.labels(worker));
    this.#settled = countersBy(kinds, (outcome) => settled.labels(worker, outcome));
    this.#inHand = inHand.labels(worker);
  }

  claimed(rows: Row[]): void {
    this.#claimed.inc(rows.length);
    this.#job.claimed?.(rows);
    this.#takenOver.inc(rows.filter(({ takenOver }) => takenOver).length);
  }

  inHand(rows: number): void {
    this.#inHand.set(rows);
  }

  settled(settlements: Settlement<Row, Result>[], owned: Set<string>): void {
    this.#leaseLost.inc(settlements.length - owned.size);
    const counts = { done: 0, retry: 0, failed: 0, released: 0 };
    for (const settlement of settlements) {
      if (!owned.has(settlement.row.id)) continue;
      counts[settlement.kind]++;
      if (settlement.kind === "failed") this.#gaveUp(settlement.row, settlement.error);
    }
    for (const kind of kinds) this.#settled[kind].inc(counts[kind]);
  }

  #gaveUp(row: Row, error: string): void {
    const { name: worker, about } = this.#job;
    const more = { outcome: "failed", ...about(row) };
    this.#log.error("{worker} gave up on {id}: {error}", { worker, id: row.id, error, ...more });
  }
}

export function secondsSince(from: number): number {
  return (performance.now() - from) / 1_000;
}
