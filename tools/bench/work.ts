// What the bench measures: a piece of work and the limits that it is compared with.
import type { Servers } from "../servers/servers.ts";
import type { DatabaseUrls } from "../load/stage.ts";

export interface Bench {
  servers: Servers;
  quick: boolean;
}

export interface Sample {
  perSecond: number;
  figures: Record<string, number>; // by a name that ends with its unit
}

export interface Limit {
  name: string;
  what: string;
  target: number; // the work must reach at least this share of the limit
  measure(): Promise<number>; // per second
}

/** Each measurement checks that its work was done, and throws if it was not. */
export interface Work extends AsyncDisposable {
  unit: string;
  once?: boolean; // one round is long enough
  measure(): Promise<Sample>;
  limits: Limit[];
  atMost: Record<string, number>; // bounds of figures
}

/** One stage that works through its backlog. */
export interface Drain extends AsyncDisposable {
  database: DatabaseUrls;
  items: number;
  /** Returns the rate, after checking the result. This many keys share the items; absent: each item
   * has a key of its own. */
  run(keys?: number): Promise<number>;
}

export function itemsOfDrain({ quick }: Bench): number {
  return quick ? 20_000 : 100_000;
}

export interface DrainOptions {
  name: string;
  finished?: number; // number of old finished rows in the tables
  future?: number; // number of rows that are due next year
  replicas?: number;
  items?: number;
  pollInterval?: string;
  batchSize?: number; // absent: the service's own default
  wiped?: boolean; // the backlog is what a stream has lost that stored all of it
}

export type StartDrain = (bench: Bench, options: DrainOptions) => Promise<Drain>;

export type StartWork = (bench: Bench) => Promise<Work>;

/** Returns the rate per second. */
export async function timed(count: number, work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return count / (performance.now() - from) * 1_000;
}

/** Shares the numbers below `count` among workers; each takes the next one when it is ready. */
export async function shared(
  count: number,
  workers: number,
  work: (index: number, worker: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const run = async (worker: number) => {
    while (next < count) await work(next++, worker);
  };
  await Promise.all(Array.from({ length: workers }, (_, worker) => run(worker)));
}
