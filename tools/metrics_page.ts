// deno task metrics:page: writes the tables of docs/metrics.md from the metrics that the code declares.
// With --check it only says whether the page is up to date.
import { Counter } from "prom-client";
import { delaySeconds, metrics, shortSeconds } from "../shared/telemetry/metrics.ts";
import { importsOf } from "./module_graph.ts";
import { mainFile, type ServiceName } from "./services.ts";

interface Declared {
  name: string;
  help: string;
  labelNames: string[];
  bounds?: readonly number[]; // only of histograms
}

const services: ServiceName[] = ["entitlement", "notification"];
const bucketNames = new Map<readonly number[], string>([[shortSeconds, "short"], [
  delaySeconds,
  "delay",
]]);
const sections: Record<string, RegExp> = {
  Entitlement: /^entitlement_/,
  Notification: /^notification_/,
  Both: /^(?!entitlement_|notification_)/,
};

// A metric is registered when its module is loaded, so no service has to be started.
async function declaredMetrics(): Promise<Declared[]> {
  for (const service of services) {
    for (const url of await importsOf(mainFile(service))) await import(url);
  }
  const declared = metrics.getMetricsAsArray() as unknown as Declared[];
  return declared.toSorted((one, other) => one.name < other.name ? -1 : 1);
}

function rowOf(metric: Declared): string[] {
  const { name, help, labelNames, bounds } = metric;
  const type = bounds ? "histogram" : metric instanceof Counter ? "counter" : "gauge";
  const buckets = bounds ? bucketNames.get(bounds) ?? bounds.join(", ") : "";
  return [`\`${name}\``, type, labelNames.join(", "), buckets, help];
}

// As `deno fmt` aligns a table.
function tableOf(declared: Declared[]): string {
  const rows = [["metric", "type", "labels", "buckets", "meaning"], ...declared.map(rowOf)];
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  const [head, ...lines] = rows.map((row) =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")} |`
  );
  return [head, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...lines].join("\n");
}

function written(page: string, declared: Declared[]): string {
  let text = page;
  for (const [heading, names] of Object.entries(sections)) {
    const table = tableOf(declared.filter(({ name }) => names.test(name)));
    const place = new RegExp(`(?<=^## ${heading}\\n\\n)(\\|.*\\n)+`, "m");
    if (!place.test(text)) throw new Error(`docs/metrics.md has no table under "${heading}"`);
    text = text.replace(place, () => `${table}\n`);
  }
  for (const [bounds, name] of bucketNames) {
    text = text.replace(
      new RegExp(`^- \\*\\*${name}\\*\\*: .*`, "m"),
      () => `- **${name}**: ${bounds.join(", ")}`,
    );
  }
  return text;
}

const file = new URL("../docs/metrics.md", import.meta.url);
const page = await Deno.readTextFile(file);
const wanted = written(page, await declaredMetrics());
if (!Deno.args.includes("--check")) {
  await Deno.writeTextFile(file, wanted);
} else if (page !== wanted) {
  console.error('docs/metrics.md is not up to date: run "deno task metrics:page"');
  Deno.exitCode = 1;
}
