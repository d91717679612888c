// The metrics of a service, read from its /metrics, and those of this process.
import assert from "node:assert/strict";
import { metrics } from "../../shared/telemetry/metrics.ts";
import { call } from "./api.ts";

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export interface Scraped {
  types: Map<string, string>;
  helps: Map<string, string>;
  samples: Sample[];
}

export async function scrapeOf({ url }: { url: string }): Promise<Scraped> {
  const answer = await call(`${url}/metrics`);
  assert.equal(answer.status, 200, answer.text);
  assert.match(answer.headers.get("Content-Type") ?? "", /^text\/plain; version=0\.0\.4/);
  const scraped: Scraped = { types: new Map(), helps: new Map(), samples: [] };
  for (const line of answer.text.split("\n").filter((line) => line !== "")) {
    const [, comment, about = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (comment === "HELP") scraped.helps.set(about, rest);
    else if (comment === "TYPE") scraped.types.set(about, rest);
    else scraped.samples.push(readSample(line));
  }
  return scraped;
}

function readSample(line: string): Sample {
  const [, name, labels, value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  assert.ok(name, line);
  const pairs = [...(labels ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
  return {
    name,
    labels: Object.fromEntries(pairs.map(([, label, value]) => [label, value])),
    value: Number(value?.replace("+Inf", "Infinity")),
  };
}

export function samplesOf(scraped: Scraped, name: string, labels = {}): Sample[] {
  return scraped.samples.filter((sample) =>
    sample.name === name &&
    Object.entries(labels).every(([label, wanted]) => sample.labels[label] === wanted)
  );
}

/** The only sample that matches; undefined if there is none. */
export function valueOf(scraped: Scraped, name: string, labels = {}): number | undefined {
  const found = samplesOf(scraped, name, labels);
  assert.ok(found.length <= 1, `${name} fits ${found.length} times`);
  return found[0]?.value;
}

/** The sum of all samples of this process that match. */
export async function metricOf(name: string, labels: Record<string, string> = {}): Promise<number> {
  const metric = (await metrics.getMetricsAsJSON()).find((metric) => metric.name === name);
  const fits = metric?.values.filter((value) =>
    Object.entries(labels).every(([label, wanted]) =>
      (value.labels as Record<string, unknown>)[label] === wanted
    )
  );
  return fits?.reduce((sum, { value }) => sum + value, 0) ?? 0;
}
