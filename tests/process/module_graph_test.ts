// What a file of ours or a package imports by a literal, Deno reads without a permission, or the
// bundler puts into the bundle: such a program is neither bundled nor started. And a package is nowhere
// loaded by a process that may start programs.
import assert from "node:assert/strict";
import { settingsOf } from "../support/entitlement.ts";
import { fileOfPackage, projectWith } from "./planted_project.ts";
import { root } from "../../tools/root.ts";

const settings = {
  ...settingsOf("postgres://kenri@127.0.0.1:9/kenri"),
  ENTITLEMENT_HTTP_PORT: "0",
};
const secret = "planted-secret";
const foreign = /neither of this project nor of its packages|The bundle imports/;
const zod = await fileOfPackage("zod", "index.js");
const before = (line: string) => (text: string) => `${line}\n${text}`;

/** What a line of code must not be able to read: a file beside the project, and one of its root. */
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
  // An argument that the bundler does not know: it leaves the import, and Deno reads it at the start.
  [leftByBundler]: (path) =>
    `console.error((await import("${path}", { with: { type: "json" }, more: 1 })).default);`,
  "text within a data: url": (path) =>
    `import s from "data:text/javascript,export { default } from 'file://${path}' with { type: 'text' }"; console.error(s);`,
  "text of the project's root": () =>
    `import s from "../.env" with { type: "text" }; console.error(s);`,
};

for (const [what, line] of Object.entries(imports)) {
  Deno.test(`a file of ours that imports ${what} from elsewhere is neither bundled nor started`, async () => {
    await using file = await secretFile();
    await using project = await projectWith({
      "shared/http/errors.ts": before(line(file.path)),
      ".env": () => secret,
    });
    const bundle = await project.run(["task", "bundle", `${project.path}/bundles`]);
    assert.notEqual(bundle.code, 0);
    assert.match(bundle.said, foreign);
    assert.deepEqual(await Array.fromAsync(Deno.readDir(`${project.path}/bundles`)), []);
    const start = await project.run(["task", "entitlement"], settings);
    assert.equal(start.code, 1);
    assert.match(start.said, foreign);
    assert.doesNotMatch(bundle.said + start.said, new RegExp(secret));
  });
}

// One for each of the checks that a bundle goes through.
for (const what of ["text", "text of the project's root", leftByBundler]) {
  const line = imports[what] ?? (() => "");
  Deno.test(`a package that imports ${what} from elsewhere is neither bundled nor started`, async () => {
    await using file = await secretFile();
    await using project = await projectWith({
      [zod]: before(line(file.path).replace("../.env", "../../../../../.env")),
      ".env": () => secret,
    });
    const bundle = await project.run(["task", "bundle", `${project.path}/bundles`]);
    assert.notEqual(bundle.code, 0);
    assert.match(bundle.said, foreign);
    assert.deepEqual(await Array.fromAsync(Deno.readDir(`${project.path}/bundles`)), []);
    const start = await project.run(["task", "entitlement"], settings);
    assert.equal(start.code, 1);
    assert.match(start.said, /Requires read access|unprepared module/);
    assert.doesNotMatch(bundle.said + start.said, new RegExp(secret));
  });
}

Deno.test("a package that starts a program when it is loaded starts none", async () => {
  const marker = await Deno.makeTempFile({ prefix: "kenri-started-" });
  const run = `await new Deno.Command("sh", { args: ["-c", "echo started >${marker}"] }).output();`;
  await using project = await projectWith({ [zod]: before(run) });
  for (const name of ["entitlement", "notification", "migrate"]) {
    const { code, said } = await project.run(["task", name], settings);
    assert.notEqual(code, 0);
    assert.match(said, /Requires run access to "sh"/);
  }
  assert.equal(await Deno.readTextFile(marker), "");
  await Deno.remove(marker);
});

Deno.test("the launcher, and what computes permissions, load no package", async () => {
  for (const tool of ["run_service", "permissions", "attached"]) {
    const file = `${root}tools/${tool}.ts`;
    const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json", file] })
      .output();
    const { modules } = JSON.parse(new TextDecoder().decode(stdout));
    const others = modules.filter(({ kind }: { kind: string }) => !["esm", "node"].includes(kind));
    assert.deepEqual(others, [], tool);
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
  for (const name of ["entitlement", "notification", "migrate"]) {
    const { said } = await project.run(["task", "--quiet", name]);
    assert.equal(said, `NotCapable sh\nNotCapable /bin/true\nran ${Deno.execPath()}\n`);
  }
});
