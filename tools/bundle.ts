// deno task bundle: each program as one file in dist/bundle, or in the folder that is named. They
// run with an empty cache and without a network for modules; docs/deploy.md shows how.
import { fileURLToPath } from "node:url";

const root = new URL("../", import.meta.url);

const programs = {
  entitlement: "entitlement/main.ts",
  notification: "notification/main.ts",
  migrate: "migrations/migrate.ts",
  provision: "tools/provision/provision.ts",
  run_bundle: "tools/run_bundle.ts", // starts one of the others with just its permissions
};

export type ProgramName = keyof typeof programs;

export async function bundleAll(folder: string, say: (line: string) => void): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for (const [name, main] of Object.entries(programs)) {
    const file = `${folder}/${name}.js`;
    await bundle(fileURLToPath(new URL(main, root)), file);
    const { size } = await Deno.stat(file);
    say(`${file} (${(size / 1e6).toFixed(1)} MB)`);
  }
  // migrate.js looks for its SQL beside itself, as migrations/migrate.ts does.
  for (const service of ["entitlement", "notification"]) {
    await copySql(fileURLToPath(new URL(`migrations/${service}`, root)), `${folder}/${service}`);
  }
}

async function bundle(main: string, file: string): Promise<void> {
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["bundle", "--quiet", "--platform", "deno", "--output", file, main],
    cwd: root,
    stdin: "null",
  }).spawn().status;
  if (!success) throw new Error(`"${main}" could not be bundled`);
}

// A file of an earlier bundle, under a number that another file has now, would be a twin.
async function copySql(from: string, to: string): Promise<void> {
  await Deno.remove(to, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  await Deno.mkdir(to);
  for await (const { name } of Deno.readDir(from)) {
    if (name.endsWith(".sql")) await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}

if (import.meta.main) {
  const folder = Deno.args[0] ?? fileURLToPath(new URL("dist/bundle", root));
  await bundleAll(folder, console.log);
}
