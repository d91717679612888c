// deno task metrics:page: writes the tables of docs/metrics.md from the metrics as they are
// declared. With --check it only reports a page that is not up to date.
import {
  delaySeconds,
  type Description,
  descriptions,
  shortSeconds,
} from "../shared/telemetry/metrics.ts";
import { importsOf } from "./module_graph.ts";
import { tableOf, writeTables } from "./page_tables.ts";
import * as services from "../services.ts";
import type { Service } from "../shared/process/program.ts";
import { mainFile, serviceNames } from "./services.ts";

// A module declares its metrics when it is loaded. Only main.ts would start the service.
for (const service of serviceNames) {
  for (const url of await importsOf(mainFile(service))) await import(url);
}

const buckets = new Map<readonly number[], string>([[shortSeconds, "short"], [
  delaySeconds,
  "delay",
]]);

function tableFor(belongs: (name: string) => boolean): string {
  const rows = descriptions.filter(({ name }) => belongs(name)).sort(byName)
    .map(({ name, type, labels, bounds, help }) => [
      `\`${name}\``,
      type,
      labels.join(", "),
      buckets.get(bounds) ?? "",
      help,
    ]);
  return tableOf(["metric", "type", "labels", "buckets", "meaning"], rows);
}

function byName(one: Description, other: Description): number {
  return one.name < other.name ? -1 : 1;
}

// Orders, Redis, and asking other services, have names of their own, because other services may have the same
// ones.
const groups: Record<string, string[]> = Object.fromEntries(
  Object.values(services).map(({ name, metricPrefix = `${name}_` }: Service) => [
    name,
    [metricPrefix],
  ]),
);
groups["orders"] = ["kenri_orders_", "kenri_endpoints"];
groups["redis"] = ["kenri_redis_"];
groups["asking"] = ["kenri_ask_", "kenri_breaker_"];
const groupOf = (name: string) =>
  Object.keys(groups).find((group) => groups[group]?.some((prefix) => name.startsWith(prefix)));
const lists = [...buckets].map(([bounds, name]) => `- **${name}**: ${bounds.join(", ")}`);
await writeTables("metrics.md", {
  buckets: lists.join("\n"),
  ...Object.fromEntries(
    Object.keys(groups).map((group) => [group, tableFor((name) => groupOf(name) === group)]),
  ),
  "all services": tableFor((name) => !groupOf(name)),
}, "metrics:page");
