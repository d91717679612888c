// deno task bundle [FOLDER]: makes one file of each program, in dist/bundle or the given folder. The
// files run without a cache and without downloading modules; docs/deploy.md shows how.
import { dirname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { migrationsIn, withDatabase } from "../migrations/program.ts";
import * as services from "../services.ts";
import { foreignModules, isOurFile, modulesBesideItself } from "./module_graph.ts";
import { type ProgramName, programs } from "./services.ts";

const root = new URL("../", import.meta.url);

const mains: Record<ProgramName | "permissions", string> = {
  ...Object.fromEntries(Object.entries(programs).map(([name, { main }]) => [name, main])) as Record<
    ProgramName,
    string
  >,
  permissions: "tools/permissions.ts", // prints the flags with which the others are started
};

export async function bundleAll(folder: string, say: (line: string) => void): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for (const [name, main] of Object.entries(mains)) {
    const file = `${folder}/${name}.js`;
    await bundle(fileURLToPath(new URL(main, root)), file);
    const { size } = await Deno.stat(file);
    say(`${file} (${(size / 1e6).toFixed(1)} MB)`);
  }
  // migrate.js looks for the folders of the services beside itself.
  for (const { name } of withDatabase(services)) {
    const sql = migrationsIn(name);
    await copySql(fileURLToPath(new URL(sql, root)), `${folder}/${sql}`);
  }
}

// A temporary folder comes first, so that no bundle with a foreign file is left behind.
async function bundle(main: string, file: string): Promise<void> {
  refuse(main, await foreignModules(main));
  const draft = await Deno.makeTempDir({ dir: dirname(file), prefix: "draft-" });
  try {
    const output = `${draft}/bundle.js`;
    const flags = ["--quiet", "--platform", "deno", "--sourcemap", "external"];
    const { success } = await new Deno.Command(Deno.execPath(), {
      args: ["bundle", ...flags, "--output", output, main],
      cwd: root,
      stdin: "null",
    }).spawn().status;
    if (!success) throw new Error(`"${main}" could not be bundled; the reason is above`);
    refuse(main, await foreignSources(output));
    refuse(main, (await modulesBesideItself(output)).map((one) => `The bundle imports "${one}"`));
    await Deno.rename(output, file);
  } finally {
    await Deno.remove(draft, { recursive: true });
  }
}

function refuse(main: string, problems: string[]): void {
  if (problems.length === 0) return;
  throw new Error([`"${main}" was not bundled:`, ...problems].join("\n"));
}

// The bundler puts every file that an import names literally into the bundle, also for packages. Its
// source map lists these files.
async function foreignSources(output: string): Promise<string[]> {
  const map: { sources: string[] } = JSON.parse(await Deno.readTextFile(`${output}.map`));
  const base = pathToFileURL(output);
  const isPackage = (url: string) =>
    url.startsWith(new URL("node_modules/", root).href) && /\.([cm]?[jt]sx?|json)$/.test(url);
  return map.sources.map((source) => new URL(source, base).href)
    .filter((url) => !isPackage(url) && !isOurFile(url))
    .map((url) =>
      `The bundle contains "${url}", which is neither of this project nor of its packages`
    );
}

// Old files are removed, because one could have the same number as another file now.
async function copySql(from: string, to: string): Promise<void> {
  await Deno.remove(to, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  await Deno.mkdir(to, { recursive: true });
  for await (const { name } of Deno.readDir(from)) {
    if (name.endsWith(".sql")) await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}

if (import.meta.main) {
  const folder = Deno.args[0] ?? fileURLToPath(new URL("dist/bundle", root));
  await bundleAll(folder, console.log);
}
