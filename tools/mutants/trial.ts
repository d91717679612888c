// Tries one mutant against its tests. It is noticed if a test fails in each of its test files.
import { readFile, writeFile } from "node:fs/promises";
import { type Mutant, mutated } from "./mutant.ts";

export type Outcome =
  | { kind: "noticed" }
  /** This test file passed, or did not end. */
  | { kind: "survived"; test: string; why: string }
  /** The mutant does not show anything about the tests and must be rewritten. */
  | { kind: "unusable"; why: string };

export interface Trial {
  /** The root of a copy of the project. */
  tree: string;
  /** The servers, for the tests. */
  env: Record<string, string>;
  /** How long each test file took without a mutant. */
  quietMs: Map<string, number>;
}

export async function tryMutant(trial: Trial, mutant: Mutant): Promise<Outcome> {
  const path = `${trial.tree}/${mutant.file}`;
  const text = await readFile(path, "utf8");
  const broken = mutated(text, mutant);
  if (broken === undefined) {
    return {
      kind: "unusable",
      why: `its file does not contain this text exactly once: ${mutant.replace}`,
    };
  }
  await writeFile(path, broken);
  try {
    return await tryTests(trial, mutant);
  } finally {
    await writeFile(path, text);
  }
}

async function tryTests(trial: Trial, { file, tests }: Mutant): Promise<Outcome> {
  if (/\.tsx?$/.test(file)) {
    const types = await runDeno(trial, ["check", "--quiet", file], typesWithinMs);
    if (!types.success) return { kind: "unusable", why: `its types fail:\n${types.output}` };
  }
  for (const test of tests) {
    const outcome = await tryTest(trial, test);
    if (outcome.kind !== "noticed") return outcome;
  }
  return { kind: "noticed" };
}

const typesWithinMs = 120_000;
/** A test gives up waiting after 20 s, or 60 s for many rows. */
const longerWithMutantMs = 90_000;

async function tryTest(trial: Trial, test: string): Promise<Outcome> {
  const withinMs = 2 * (trial.quietMs.get(test) ?? 0) + longerWithMutantMs;
  const { success, late, output } = await runTest(trial, test, withinMs);
  if (late) return { kind: "survived", test, why: `did not end within ${withinMs} ms` };
  if (success) return { kind: "survived", test, why: "passes" };
  const failedToLoad = /^running 0 tests|syntax error at or near/m.test(output) ||
    !/ [1-9]\d* failed/.test(output);
  return failedToLoad
    ? { kind: "unusable", why: `with it ${test} does not run:\n${lastLines(output)}` }
    : { kind: "noticed" };
}

/** Undefined if the file passes without a mutant; otherwise its output. */
export async function tryWithoutMutant(trial: Trial, test: string): Promise<string | undefined> {
  const from = performance.now();
  const { success, output } = await runTest(trial, test, quietWithinMs);
  trial.quietMs.set(test, performance.now() - from);
  return success ? undefined : lastLines(output);
}

const quietWithinMs = 300_000;

interface Run {
  success: boolean;
  late: boolean;
  output: string;
}

function runTest(trial: Trial, test: string, withinMs: number): Promise<Run> {
  const how = ["test", "--no-check", "--no-prompt", "--allow-all", "--fail-fast"];
  return runDeno(trial, [...how, test], withinMs);
}

async function runDeno({ tree, env }: Trial, args: string[], withinMs: number): Promise<Run> {
  const child = new Deno.Command(Deno.execPath(), {
    args,
    cwd: tree,
    env: { ...env, NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let late = false;
  const limit = setTimeout(() => {
    late = true;
    child.kill("SIGKILL");
  }, withinMs);
  const { success, stdout, stderr } = await child.output();
  clearTimeout(limit);
  const decoder = new TextDecoder();
  return { success, late, output: decoder.decode(stdout) + decoder.decode(stderr) };
}

function lastLines(output: string): string {
  return output.trimEnd().split("\n").slice(-25).join("\n");
}
