import type { Gauge } from "prom-client";
import type { Log } from "../process/log.ts";
import { gauge, metrics } from "./metrics.ts";
import { type Database, isUnavailable } from "../postgres/postgres.ts";
import { Trouble } from "../process/trouble.ts";
import manifest from "../deno.json" with { type: "json" };

// What is looked up when somebody asks for the figures, and not counted as it happens.

type LookUp = () => Promise<void> | void;

const lookUps: LookUp[] = [];

export async function scrape(): Promise<string> {
  await Promise.all(lookUps.map((lookUp) => lookUp()));
  return await metrics.metrics();
}

const buildInfo = gauge("kenri_build_info", "1, with what runs here", [
  ...["service", "version", "deno"],
]);
const lag = gauge("kenri_event_loop_lag_seconds", "how late a timer was at the scrape");
const resident = gauge("process_resident_memory_bytes", "memory of the process");
const heap = gauge("process_heap_used_bytes", "of which in use by JavaScript");
const startTime = gauge("process_start_time_seconds", "when the process started, as a Unix time");

export function observeProcess(service: string): void {
  buildInfo.set({ service, version: manifest.version, deno: Deno.version.deno }, 1);
  startTime.set(performance.timeOrigin / 1_000);
  lookUps.push(async () => {
    const from = performance.now();
    await new Promise((turn) => setTimeout(turn, 0));
    lag.set((performance.now() - from) / 1_000);
    const { rss, heapUsed } = Deno.memoryUsage();
    resident.set(rss);
    heap.set(heapUsed);
  });
}

const connections = gauge(
  "kenri_database_pool_connections",
  "connections of the pool: `busy` or `idle`; 10 at most",
  ["state"],
);
const waiting = gauge("kenri_database_pool_waiting", "callers that wait for a connection");

export function observePool(database: Database): void {
  lookUps.push(() => {
    const { totalCount, idleCount, waitingCount } = database;
    connections.set({ state: "busy" }, totalCount - idleCount);
    connections.set({ state: "idle" }, idleCount);
    waiting.set(waitingCount);
  });
}

const batchWaiting = gauge(
  "kenri_batch_waiting_current",
  "items that wait for the statement in which many go together",
  ["batch"],
);
const batches = new Map<string, { waiting: number }>();
lookUps.push(() => {
  for (const [batch, { waiting }] of batches) batchWaiting.set({ batch }, waiting);
});

// A later one of the same name takes its place.
export function observeBatch(name: string, batch: { waiting: number }): void {
  batches.set(name, batch);
}

export interface Figure {
  gauge: Gauge<string>;
  labels?: Record<string, string>;
  value: number;
}

// Of a figure that has to be asked for: nothing until there was an answer.
export function collectedGauge<Label extends string = never>(
  name: string,
  help: string,
  labelNames: Label[] = [],
): Gauge<Label> {
  const made = gauge(name, help, labelNames);
  made.remove({});
  return made;
}

const databaseUp = gauge(
  "kenri_database_up",
  "1 when the database answered the questions of a scrape, 0 when it did not",
);

export function collectFromDatabase(ask: () => Promise<Figure[]>, log: Log): void {
  const trouble = new Trouble(
    (error) => log.error("Figures of the tables can't be read: {error}", { error }),
    () => log.info("Figures of the tables can be read again"),
  );
  const askSafely = async () => {
    try {
      const figures = await ask();
      trouble.works("figures");
      return figures;
    } catch (error) {
      // Of an outage they tell who have to do with it.
      if (!isUnavailable(error)) trouble.fails("figures", error);
      throw error;
    }
  };
  lookUps.push(cached(askSafely, (answered) => databaseUp.set(answered ? 1 : 0)));
}

export function collectFromStream(ask: () => Promise<Figure[]>): void {
  lookUps.push(cached(ask, () => {}));
}

const everyMs = 5_000;
const withinMs = 1_000;

// However often it is scraped, and by how many, and however slow the answer: one question at a time,
// with a pause after each. Without an answer in time the figures are left out.
export function cached(
  ask: () => Promise<Figure[]>,
  note: (answered: boolean) => void,
): () => Promise<void> {
  let shown: Figure[] = [];
  let asking: Promise<void> | undefined;
  let nextAt = -Infinity;
  const show = (figures: Figure[]) => {
    for (const { gauge, labels = {} } of shown) gauge.remove(labels);
    for (const { gauge, labels = {}, value } of figures) gauge.set(labels, value);
    shown = figures;
  };
  const askOnce = async () => {
    const from = performance.now();
    const answer = await ask().catch(() => undefined);
    show(answer ?? []);
    note(answer !== undefined);
    const now = performance.now();
    nextAt = now + Math.max(everyMs, 10 * (now - from));
    asking = undefined;
  };
  return async () => {
    if (performance.now() >= nextAt) asking ??= askOnce();
    if (!asking) return;
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      show([]);
      note(false);
      late.resolve();
    }, withinMs);
    await Promise.race([asking, late.promise]);
    clearTimeout(timer);
  };
}
