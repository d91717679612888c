// The lists of `deno task mutants` stay valid when the code moves, and the tool distinguishes a bug that
// its tests notice from one that they don't.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { allMutants } from "../../tools/mutants/lists.ts";
import { type Mutant, mutated } from "../../tools/mutants/mutant.ts";
import { root } from "../../tools/root.ts";
import { copyProject } from "../../tools/mutants/tree.ts";
import { type Trial, tryMutant, tryWithoutMutant } from "../../tools/mutants/trial.ts";

Deno.test("the text of each mutant is exactly once in its file, and its tests exist", async () => {
  const problems: string[] = [];
  for (const mutant of allMutants) {
    const { file, property, replace, tests } = mutant;
    const text = await Deno.readTextFile(root + file).catch(() => "");
    const isUsable = ![undefined, text].includes(mutated(text, mutant)) && tests.length > 0;
    const missing = tests.filter((test) => !existsSync(root + test));
    if (isUsable && missing.length === 0) continue;
    problems.push(`${file}: ${property} (${missing.length > 0 ? missing.join() : replace})`);
  }
  assert.deepEqual(problems, []);
});

Deno.test("no mutant is listed twice", () => {
  const known = new Set(
    allMutants.map(({ file, replace, by }) => JSON.stringify([file, replace, by])),
  );
  assert.equal(known.size, allMutants.length);
});

/** A tiny project whose test does not check the limit itself. */
async function tinyProject(): Promise<Trial & AsyncDisposable> {
  const tree = await Deno.makeTempDir({ prefix: "kenri-tiny-" });
  await Deno.writeTextFile(
    `${tree}/age.ts`,
    "export const isAdult = (age: number): boolean => age >= 18;\n",
  );
  await Deno.writeTextFile(
    `${tree}/age_test.ts`,
    `import { isAdult } from "./age.ts";
     Deno.test("a child is none", () => {
       if (isAdult(17) || !isAdult(19)) throw new Error("wrong");
     });`,
  );
  const remove = () => Deno.remove(tree, { recursive: true });
  return { tree, env: {}, quietMs: new Map(), [Symbol.asyncDispose]: remove };
}

function ageMutant(replace: string, by: string): Mutant {
  return { file: "age.ts", property: "18 is adult", replace, by, tests: ["age_test.ts"] };
}

Deno.test("a mutant is noticed when a test fails, and survives when none does", async () => {
  await using trial = await tinyProject();
  const outcomeOf = async (replace: string, by: string) =>
    (await tryMutant(trial, ageMutant(replace, by))).kind;
  assert.equal(await tryWithoutMutant(trial, "age_test.ts"), undefined);
  assert.equal(await outcomeOf(">= 18", "< 18"), "noticed");
  assert.equal(await outcomeOf(">=", ">"), "survived");
  assert.equal(await tryWithoutMutant(trial, "age_test.ts"), undefined, "the file is as it was");
});

Deno.test("a mutant is unusable when its text is missing, its types fail or it does not load", async () => {
  await using trial = await tinyProject();
  for (
    const [replace, by] of [["> 18", "< 18"], ["a", "b"], ["18", '"18"'], ["export ", ""]] as const
  ) {
    const outcome = await tryMutant(trial, ageMutant(replace, by));
    assert.equal(outcome.kind, "unusable", `${replace} by ${by}`);
  }
});

Deno.test("mutants are put into a copy, never into the project itself", async () => {
  const copy = await copyProject();
  try {
    assert.notEqual(copy.path, root);
    const [own, copied] = await Promise.all(
      [root, `${copy.path}/`].map((root) => Deno.readTextFile(`${root}deno.json`)),
    );
    assert.equal(copied, own);
  } finally {
    await copy.remove();
  }
  assert.equal(existsSync(copy.path), false);
});
