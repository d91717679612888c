import { metrics } from "../telemetry/metrics.ts";

// The counters of this process, sampled once a second and kept for as long as a sparkline shows.
// Sampling does not use the database, so it continues while nobody looks.

export interface Counted {
  name: string;
  labels?: Record<string, string>;
}

// The counters of a worker that settles leased rows.
export function workerCounters(worker: string): Record<"done" | "retried", Counted> {
  const settled = (outcome: string) => ({
    name: "kenri_worker_settled_total",
    labels: { worker, outcome },
  });
  return { done: settled("done"), retried: settled("retry") };
}

type Totals<Name extends string> = Record<Name, number | undefined>;

interface Sample<Name extends string> {
  atMs: number;
  totals: Totals<Name>;
}

const keptMs = 300_000;
const rateMs = 5_000; // long enough to be steady, short enough to be current
export const points = keptMs / rateMs;

export class Samples<Name extends string> {
  readonly #read: () => Promise<Totals<Name>>;
  #samples: Sample<Name>[] = [];

  constructor(read: () => Promise<Totals<Name>>) {
    this.#read = read;
  }

  async take(atMs: number): Promise<void> {
    this.#samples.push({ atMs, totals: await this.#read() });
    const first = this.#samples.findIndex((sample) => sample.atMs >= atMs - keptMs);
    this.#samples = this.#samples.slice(first);
  }

  // Per second over the last five seconds; undefined while it is not known.
  rate(counter: Name): number | undefined {
    const last = this.#samples.at(-1);
    return last && this.#rateBetween(counter, last.atMs - rateMs, last.atMs);
  }

  // One rate for each five seconds of the last five minutes, the newest last.
  rates(counter: Name): (number | undefined)[] {
    const last = this.#samples.at(-1);
    if (!last) return [];
    return Array.from({ length: points }, (_, point) => {
      const untilMs = last.atMs - (points - 1 - point) * rateMs;
      return this.#rateBetween(counter, untilMs - rateMs, untilMs);
    });
  }

  #rateBetween(counter: Name, fromMs: number, untilMs: number): number | undefined {
    const within = this.#samples.filter(({ atMs }) => atMs >= fromMs && atMs <= untilMs);
    const [first] = within;
    const last = within.at(-1);
    const before = first?.totals[counter];
    const after = last?.totals[counter];
    if (!first || !last || before === undefined || after === undefined) return undefined;
    const seconds = (last.atMs - first.atMs) / 1_000;
    return seconds === 0 ? undefined : Math.max(0, after - before) / seconds;
  }
}

export function readCounters<Name extends string>(
  counters: Record<Name, Counted>,
): () => Promise<Totals<Name>> {
  const named = Object.entries<Counted>(counters);
  return async () => {
    const totals = await Promise.all(
      named.map(async ([name, counter]) => [name, await totalOf(counter)] as const),
    );
    return Object.fromEntries(totals) as Totals<Name>;
  };
}

// The sum of all series with these labels; undefined if there is no such counter.
async function totalOf({ name, labels = {} }: Counted): Promise<number | undefined> {
  const found = await metrics.getSingleMetric(name)?.get();
  return found?.values
    .filter((series) =>
      Object.entries(labels).every(([label, value]) =>
        (series.labels as Record<string, unknown>)[label] === value
      )
    )
    .reduce((total, { value }) => total + value, 0);
}
