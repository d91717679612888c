// What the bench measures: a piece of work, and beside it the limits that it is compared with.
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
  target: number; // the work shall be at least so many times as fast
  measure(): Promise<number>; // per second
}

/** Each measurement checks that its work was really done, and throws if it was not. */
export interface Work extends AsyncDisposable {
  unit: string;
  once?: boolean; // it takes long enough for one round to do
  measure(): Promise<Sample>;
  limits: Limit[];
  atMost: Record<string, number>; // bounds of figures
}

/** One stage that works off what waits for it: so many per second, after each has been checked. */
export interface Drain extends AsyncDisposable {
  database: DatabaseUrls;
  items: number;
  run(): Promise<number>;
}

export function itemsOfDrain({ quick }: Bench): number {
  return quick ? 20_000 : 100_000;
}

export interface DrainOptions {
  name: string;
  finished?: number; // rows that lie in the tables from before
  replicas?: number;
}

export type StartDrain = (bench: Bench, options: DrainOptions) => Promise<Drain>;

export type StartWork = (bench: Bench) => Promise<Work>;

/** Per second, by this process's clock. */
export async function timed(count: number, work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return count / (performance.now() - from) * 1_000;
}

/** The same work by so many at once, each taking the next number when it is done with one. */
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
