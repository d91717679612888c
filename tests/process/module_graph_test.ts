// Deno reads an import with a literal path without any permission, and the bundler puts it into the
// bundle. So a program with an import from outside the project is neither bundled nor started. And
// no process that may start programs loads a package.
import assert from "node:assert/strict";
import { settingsOf } from "../support/entitlement.ts";
import { fileOfPackage, projectWith } from "./planted_project.ts";
import { packagesOf } from "../../tools/module_graph.ts";
import { root } from "../../tools/root.ts";
import { serviceNames } from "../../tools/services.ts";

const settings = {
  ...settingsOf("postgres://kenri@127.0.0.1:9/kenri"),
  ENTITLEMENT_HTTP_PORT: "0",
};
const secret = "planted-secret";
const foreign = /neither of this project nor of its packages|The bundle imports/;
const zod = await fileOfPackage("zod", "index.js");
const before = (line: string) => (text: string) => `${line}\n${text}`;

/** A file outside the project, which the program must not be able to read. */
async function secretFile() {
  const path = await Deno.makeTempFile({ prefix: "kenri-secret-", suffix: ".json" });
  await Deno.writeTextFile(path, JSON.stringify(secret));
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path) };
}

const leftByBundler = "JSON, in a way that the bundler leaves as it is,";
const imports: Record<string, (path: string) => string> = {
  "text": (path) => `import s from "${path}" with { type: "text" }; console.error(s);`,
  "JSON": (path) => `import s from "${path}" with { type: "json" }; console.error(s);`,
  "text, dynamically": (path) =>
    `console.error((await import("${path}", { with: { type: "text" } })).default);`,
  // The bundler does not know this argument and keeps the import, which Deno reads at the start.
  [leftByBundler]: (path) =>
    `console.error((await import("${path}", { with: { type: "json" }, more: 1 })).default);`,
  "text within a data: url": (path) =>
    `import s from "data:text/javascript,export { default } from 'file://${path}' with { type: 'text' }"; console.error(s);`,
  "text of the project's root": () =>
    `import s from "../../.env" with { type: "text" }; console.error(s);`,
};

async function assertRefused(
  file: string,
  changed: (text: string) => string,
  atStart: RegExp,
): Promise<void> {
  await using project = await projectWith({ [file]: changed, ".env": () => secret });
  const bundle = await project.run(["task", "bundle", `${project.path}/bundles`]);
  assert.notEqual(bundle.code, 0);
  assert.match(bundle.said, foreign);
  assert.deepEqual(await Array.fromAsync(Deno.readDir(`${project.path}/bundles`)), []);
  const start = await project.run(["task", "entitlement"], settings);
  assert.equal(start.code, 1);
  assert.match(start.said, atStart);
  assert.doesNotMatch(bundle.said + start.said, new RegExp(secret));
}

for (const [what, line] of Object.entries(imports)) {
  Deno.test(`a file of ours that imports ${what} from elsewhere is neither bundled nor started`, async () => {
    await using file = await secretFile();
    await assertRefused("shared/http/errors.ts", before(line(file.path)), foreign);
  });
}

// One for each of the checks on a bundle.
for (const what of ["text", "text of the project's root", leftByBundler]) {
  const line = imports[what] ?? (() => "");
  Deno.test(`a package that imports ${what} from elsewhere is neither bundled nor started`, async () => {
    await using file = await secretFile();
    const text = line(file.path).replace("../../.env", "../../../../../.env");
    await assertRefused(zod, before(text), /Requires read access|unprepared module/);
  });
}

Deno.test("a package that starts a program when it is loaded starts none", async () => {
  const marker = await Deno.makeTempFile({ prefix: "kenri-started-" });
  const run = `await new Deno.Command("sh", { args: ["-c", "echo started >${marker}"] }).output();`;
  await using project = await projectWith({ [zod]: before(run) });
  for (const name of [...serviceNames, "migrate"]) {
    const { code, said } = await project.run(["task", name], settings);
    assert.notEqual(code, 0);
    assert.match(said, /Requires run access to "sh"/);
  }
  assert.equal(await Deno.readTextFile(marker), "");
  await Deno.remove(marker);
});

Deno.test("the launcher, and what computes permissions, load no package", async () => {
  for (const tool of ["run_service", "permissions", "attached"]) {
    assert.deepEqual(await packagesOf(`${root}tools/${tool}.ts`), [], tool);
  }
});

Deno.test("the launcher may start Deno, and no other program", async () => {
  await using project = await projectWith({
    "tools/run_service.ts": () =>
      `for (const program of ["sh", "/bin/true", Deno.execPath()]) {
        try {
          await new Deno.Command(program, { args: ["--version"] }).output();
          console.log("ran", program);
        } catch ({ name }) {
          console.log(name, program);
        }
      }`,
  });
  for (const name of [...serviceNames, "migrate"]) {
    const { said } = await project.run(["task", "--quiet", name]);
    assert.equal(said, `NotCapable sh\nNotCapable /bin/true\nran ${Deno.execPath()}\n`);
  }
});
