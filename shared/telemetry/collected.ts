import type { Gauge } from "prom-client";
import { isUnavailable } from "../postgres/postgres.ts";
import type { Log } from "../process/log.ts";
import { Trouble } from "../process/trouble.ts";
import { gauge } from "./metrics.ts";
import { onScrape } from "./scrape.ts";

export interface Figure {
  gauge: Gauge<string>;
  labels?: Record<string, string> | undefined;
  value: number;
}

// A gauge without a value until the first answer.
export function collectedGauge<Label extends string = never>(
  name: string,
  help: string,
  labelNames: Label[] = [],
): Gauge<Label> {
  const made = gauge(name, help, labelNames);
  made.remove({});
  return made;
}

const databaseUp = collectedGauge(
  "kenri_database_up",
  "1 when the database answered the last scrape, 0 when it did not",
);

export function collectFromDatabase(ask: () => Promise<Figure[]>, log: Log): void {
  const trouble = new Trouble(
    (error) => log.error("Metrics can't be read from the tables: {error}", { error }),
    () => log.info("Metrics can be read from the tables again"),
  );
  const askSafely = async () => {
    try {
      const figures = await ask();
      trouble.works("figures");
      return figures;
    } catch (error) {
      // An outage of the database is reported by the code that needs it.
      if (!isUnavailable(error)) trouble.fails("figures", error);
      throw error;
    }
  };
  onScrape(cached(askSafely, (answered) => databaseUp.set(answered ? 1 : 0)));
}

export function collectFromStream(ask: () => Promise<Figure[]>): void {
  onScrape(cached(ask, () => {}));
}

const everyMs = 5_000;
const withinMs = 1_000;

// Asks at most once at a time and with a pause after each answer, however often and by however many
// clients it is called. Without an answer in time the figures are left out.
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
