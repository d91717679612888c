// Runs the commands of docs/runbook.md as they are written there.
import { keep } from "../../tools/servers/evidence.ts";
import assert from "node:assert/strict";
import { ask } from "../support/entitlement.ts";
import type { Settings } from "../../tools/servers/service_process.ts";
import { root } from "../../tools/root.ts";
import { notDeployed } from "./ops.ts";

const text = await Deno.readTextFile(`${root}/docs/runbook.md`);

/** Returns the blocks of one kind below a heading, in their order. */
export function blocksOf(heading: string, kind: "sh" | "sql" | "promql"): string[] {
  const [, section] = text.split(`\n## ${heading}\n`);
  assert.ok(section, `docs/runbook.md has no "${heading}"`);
  const [own = ""] = section.split("\n## ");
  return [...own.matchAll(new RegExp(`^\`\`\`${kind}\\n(.*?)^\`\`\``, "gms"))]
    .map(([, block = ""]) => block);
}

export const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, heading = ""]) => heading);

/** Runs a command in the folder of the project and returns its output. */
export async function runCommand(
  heading: string,
  nth: number,
  settings: Settings,
  expectedCode = 0,
): Promise<string> {
  const command = blocksOf(heading, "sh")[nth];
  assert.ok(command, `"${heading}" has no command ${nth}`);
  return await runShell(command, settings, expectedCode);
}

export async function runShell(
  command: string,
  settings: Settings,
  expectedCode = 0,
): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command("sh", {
    args: ["-ec", command],
    cwd: root,
    env: {
      KENRI_WITHOUT: notDeployed((name) =>
        Object.hasOwn(settings, `${name.toUpperCase()}_HTTP_PORT`)
      ),
      ...settings,
      NO_COLOR: "1",
    },
  }).output();
  const decoder = new TextDecoder();
  const output = decoder.decode(stdout) + decoder.decode(stderr);
  keep("runbook", output);
  assert.equal(code, expectedCode, `${command}\n${output}`);
  return output;
}

export function runQuery<Row>(heading: string, nth: number, ownerUrl: string): Promise<Row[]> {
  const statement = blocksOf(heading, "sql")[nth];
  assert.ok(statement, `"${heading}" has no query ${nth}`);
  return ask(ownerUrl, statement);
}
