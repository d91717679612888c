// Reads the pages for operators and the files of deploy/observability.
import { parse } from "yaml";

const root = new URL("../../", import.meta.url);

export function read(path: string): string {
  return Deno.readTextFileSync(new URL(path, root));
}

/** The anchor that git servers make of a heading. */
export function anchorOf(heading: string): string {
  return heading.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
}

/** All sections of a level, by their headings. */
export function sectionsOf(page: string, level: "##" | "###"): Map<string, string> {
  const end = new RegExp(`\n#{2,${level.length}} `);
  const sections = page.split(`\n${level} `).slice(1).map((section): [string, string] => {
    const [heading = "", ...lines] = section.split("\n");
    return [heading, lines.join("\n").split(end)[0] ?? ""];
  });
  return new Map(sections);
}

/** All texts in backticks. */
export function codeIn(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code.replaceAll(/\s+/g, " "));
}

export interface Metric {
  name: string;
  type: string;
  labels: string[];
}

/** The metrics in the tables below some headings of docs/metrics.md. */
export function metricsBelow(...headings: string[]): Metric[] {
  const sections = sectionsOf(read("docs/metrics.md"), "##");
  const text = headings.map((heading) => sections.get(heading) ?? "").join("");
  return [...text.matchAll(/^\| `(\w+)` *\|(.*)$/gm)].map(([, name = "", rest = ""]) => {
    const [type = "", labels = ""] = rest.split("|").map((cell) => cell.trim());
    return { name, type, labels: labels.split(", ").filter(Boolean) };
  });
}

interface Panel {
  id: number;
  title: string;
  type: string;
  gridPos: { x: number; y: number; w: number; h: number };
  datasource?: { uid: string };
  targets?: { expr: string; refId: string }[];
}

export const dashboard: { uid: string; panels: Panel[] } = JSON.parse(
  read("deploy/observability/grafana/kenri.json"),
);
export const panelQueries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr }))
);

export const promqlOfPages = ["docs/slo.md", "docs/runbook.md"].flatMap((path) =>
  [...read(path).matchAll(/^```promql\n([^]*?)^```/gm)].flatMap(([, block = ""]) =>
    block.trim().split(/\n(?=\S)/).map((expr) => ({ title: path, expr }))
  )
);

// deno-lint-ignore no-explicit-any
export function yamlOf(path: string): any {
  return parse(read(path), { merge: true });
}
