// Prometheus' own tool, for the rules of deploy/observability.
import assert from "node:assert/strict";
import { parse, stringify } from "yaml";
import { findPromtool } from "../../tools/servers/find_promtool.ts";
import { root } from "../../tools/root.ts";

export const folder = `${root}deploy/observability/`;
export const ruleFiles = ["records.yaml", "alerts.yaml"].map((name) => folder + name);

export interface Alert {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string; failure_mode: string };
  annotations: { summary: string; runbook: string };
}

interface Record {
  record: string;
  expr: string;
}

const rulesOf = <Rule>(file: string): Rule[] =>
  parse(Deno.readTextFileSync(folder + file))
    .groups.flatMap(({ rules }: { rules: Rule[] }) => rules);
export const records = rulesOf<Record>("records.yaml");
export const alerts = rulesOf<Alert>("alerts.yaml");

/** Fails with the output of promtool. */
export async function promtool(...args: string[]): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(await findPromtool(), {
    args,
    env: { GOGC: "400" }, // collects garbage less often: a sixth less processor time
  }).output();
  const decoder = new TextDecoder();
  assert.ok(success, decoder.decode(stdout) + decoder.decode(stderr));
}

/** Runs a command of promtool on a file with this content. */
export async function promtoolOn(content: unknown, ...command: string[]): Promise<void> {
  const file = await Deno.makeTempFile({ suffix: ".yaml" });
  try {
    await Deno.writeTextFile(file, stringify(content));
    await promtool(...command, file);
  } finally {
    await Deno.remove(file);
  }
}
