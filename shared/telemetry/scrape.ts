import { metrics } from "./metrics.ts";

// Some figures are not counted as things happen but looked up when the metrics are scraped.

type LookUp = () => Promise<void> | void;

const lookUps: LookUp[] = [];

export function onScrape(lookUp: LookUp): void {
  lookUps.push(lookUp);
}

export async function scrape(): Promise<string> {
  await Promise.all(lookUps.map((lookUp) => lookUp()));
  return await metrics.metrics();
}
