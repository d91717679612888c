// The schema of events and its generated code: `deno task proto:generate`, `proto:check`,
// `proto:release`.
import { readdir } from "node:fs/promises";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../proto/", import.meta.url));
// The path is relative to the folder in which buf works, because buf takes a `#` in a path for
// options.
const baseline = "released.json";

const commands: Record<string, () => Promise<boolean>> = { generate, check, release };
const command = commands[Deno.args[0] ?? ""];
if (command === undefined) {
  console.error(`Usage: deno run -A tools/proto.ts ${Object.keys(commands).join("|")}`);
  Deno.exit(2);
}
Deno.exit(await command() ? 0 : 1);

function generate(): Promise<boolean> {
  return buf("generate");
}

/** Reports all problems, not only the first. */
async function check(): Promise<boolean> {
  const clean = await buf("lint");
  const fresh = await isFresh();
  const compatible = await isCompatible();
  return clean && fresh && compatible;
}

async function release(): Promise<boolean> {
  if (!await buf("build", "--exclude-source-info", "-o", baseline)) return false;
  // buf writes a single line, in which a reviewer could not see which field was added.
  const image = JSON.parse(await Deno.readTextFile(join(folder, baseline)));
  await Deno.writeTextFile(join(folder, baseline), JSON.stringify(image, null, 2) + "\n");
  return true;
}

async function isFresh(): Promise<boolean> {
  const scratch = await Deno.makeTempDir();
  try {
    if (!await buf("generate", "-o", scratch)) return false;
    const wanted = await readTree(join(scratch, "gen"));
    const found = await readTree(join(folder, "gen"));
    const stale = [...new Set([...wanted.keys(), ...found.keys()])]
      .filter((path) => wanted.get(path) !== found.get(path));
    for (const path of stale) console.error(`Generated code is stale: "proto/gen/${path}"`);
    if (stale.length > 0) console.error("Run `deno task proto:generate` and commit the result");
    return stale.length === 0;
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
}

async function isCompatible(): Promise<boolean> {
  if (await buf("breaking", "--against", baseline)) return true;
  console.error(
    "The schema is not compatible with the released one: keep old fields and add new ones. " +
      "`deno task proto:release` makes the current schema the released one",
  );
  return false;
}

/** Path below the root → text. */
async function readTree(root: string): Promise<Map<string, string>> {
  const tree = new Map<string, string>();
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    tree.set(relative(root, path), await Deno.readTextFile(path));
  }
  return tree;
}

async function buf(...args: string[]): Promise<boolean> {
  // Deno starts it by its name in deno.json, so the package finds its own binary for this platform,
  // no postinstall script runs, and the version is written in one place.
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--allow-all", "@bufbuild/buf", ...args],
    cwd: folder,
    // buf.gen.yaml starts its plugin as `deno`, which must be this one.
    env: { PATH: [dirname(Deno.execPath()), Deno.env.get("PATH") ?? ""].join(delimiter) },
  });
  return (await child.spawn().status).success;
}
