// deno task mutants [--only FOLDER|FILE]…: puts each bug of the lists into a copy of the project,
// one at a time, and runs the tests that must notice it.
import { parseArgs } from "node:util";
import { plantedPassword, plantedSettings } from "../planted.ts";
import { keepServersInMemory } from "../servers/in_memory.ts";
import { startServers } from "../servers/servers.ts";
import { allMutants } from "./lists.ts";
import { folderOf, type Mutant } from "./mutant.ts";
import { copyProject } from "./tree.ts";
import { type Outcome, type Trial, tryMutant, tryWithoutMutant } from "./trial.ts";

/** With more, tests would time out, because all share one PostgreSQL. */
const mostAtOnce = 4;
/** The percentage that must be noticed. */
const enough = 95;

const { values: { only } } = parseArgs({
  args: Deno.args,
  options: { only: { type: "string", multiple: true, default: [] } },
});
const chosen = allMutants.filter((mutant) =>
  only.length === 0 || only.includes(mutant.file) || only.includes(folderOf(mutant))
);
if (chosen.length === 0) {
  throw new Error(
    `--only matches no mutant: ${only.join(", ")} is neither a folder nor a file of the lists`,
  );
}

// The copies first: Deno permits programs in them to read nothing below /dev, where the memory is.
const trees = await Promise.all(
  Array.from({ length: Math.min(navigator.hardwareConcurrency, mostAtOnce) }, copyProject),
);
keepServersInMemory();
// Test files run side by side and share the roles of PostgreSQL, and so their password.
const started = await startServers({ password: plantedPassword, say: console.log });
const env = {
  ...plantedSettings,
  KENRI_TEST_POSTGRES_URL: started.postgres.url,
  KENRI_TEST_NATS_URL: started.nats.url,
  KENRI_TEST_REDIS_URL: started.redis.url,
};
const quietMs = new Map<string, number>();
const trials = trees.map(({ path }): Trial => ({ tree: path, env, quietMs }));

const red = new Map<string, string>();
await sideBySide(new Set(chosen.flatMap(({ tests }) => tests)), async (trial, test) => {
  const failure = await tryWithoutMutant(trial, test);
  if (failure !== undefined) red.set(test, failure);
});
console.log(`${quietMs.size - red.size} of ${quietMs.size} test files pass without a mutant`);

const outcomes = new Map<Mutant, Outcome>();
await sideBySide(chosen, async (trial, mutant) => {
  const test = mutant.tests.find((test) => red.has(test));
  const outcome: Outcome = test === undefined
    ? await tryMutant(trial, mutant)
    : { kind: "unusable", why: `${test} fails without it:\n${red.get(test)}` };
  outcomes.set(mutant, outcome);
  console.log(lineOf(mutant, outcome));
});
await Promise.all(trees.map((tree) => tree.remove()));
await started.stop();

console.log();
for (const [folder, mutants] of Map.groupBy(chosen, folderOf)) {
  console.log(`${folder} ${count(mutants)}`);
}
console.log(`total ${count(chosen)}`);
const unusable = [...outcomes.values()].filter(({ kind }) => kind === "unusable").length;
if (unusable > 0) console.log(`${unusable} could not be tried; the reasons are above`);
Deno.exit(unusable === 0 && noticed(chosen) * 100 >= chosen.length * enough ? 0 : 1);

/** Runs as many at a time as the project has copies. */
async function sideBySide<Item>(
  items: Iterable<Item>,
  work: (trial: Trial, item: Item) => Promise<void>,
): Promise<void> {
  const rest = Iterator.from(items);
  await Promise.all(trials.map(async (trial) => {
    for (const item of rest) await work(trial, item);
  }));
}

function lineOf({ file, property }: Mutant, outcome: Outcome): string {
  switch (outcome.kind) {
    case "noticed":
      return `noticed   ${file}: ${property}`;
    case "survived":
      return `SURVIVED  ${file}: ${property}\n          ${outcome.test} ${outcome.why}`;
    case "unusable":
      return `UNUSABLE  ${file}: ${property}\n${outcome.why}`;
  }
}

function noticed(mutants: Mutant[]): number {
  return mutants.filter((mutant) => outcomes.get(mutant)?.kind === "noticed").length;
}

function count(mutants: Mutant[]): string {
  return `${noticed(mutants)} of ${mutants.length}`;
}
