// A copy of the project in which some files are not what they were: what somebody else might publish.
import assert from "node:assert/strict";
import { dirname } from "node:path";
import { root } from "../../tools/root.ts";

const parts = ["deno.json", "deno.lock", "node_modules", "entitlement", "notification", "shared"]
  .concat("proto", "client", "ops", "migrations", "tools");

export interface PlantedProject extends AsyncDisposable {
  path: string;
  /** Runs Deno in the copy; what it prints is one text. */
  run(args: string[], env?: Record<string, string>): Promise<{ code: number; said: string }>;
}

/** `files` says how the text of a file becomes another one; a new file has no text before. */
export async function projectWith(
  files: Record<string, (text: string) => string>,
): Promise<PlantedProject> {
  await Deno.mkdir(`${root}.kenri`, { recursive: true });
  const path = await Deno.makeTempDir({ dir: `${root}.kenri`, prefix: "planted-" });
  // Links to the same files, because there are thousands: a changed one is made anew.
  const { success } = await new Deno.Command("cp", {
    args: ["-al", ...parts.map((part) => root + part), path],
  }).output();
  assert.ok(success);
  for (const [file, change] of Object.entries(files)) {
    const target = `${path}/${file}`;
    await Deno.mkdir(dirname(target), { recursive: true });
    const text = await Deno.readTextFile(target).catch(() => undefined);
    if (text !== undefined) await Deno.remove(target);
    await Deno.writeTextFile(target, change(text ?? ""));
  }
  return {
    path,
    run: async (args, env = {}) => {
      const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
        args,
        cwd: path,
        env: { NO_COLOR: "1", ...env },
        stdin: "null",
        // A service that starts although it should not would stay.
        signal: AbortSignal.timeout(60_000),
      }).output();
      return { code, said: [stdout, stderr].map((b) => new TextDecoder().decode(b)).join("") };
    },
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}

/** The file of a package that an import of it loads first. */
export async function fileOfPackage(name: string, file: string): Promise<string> {
  const { imports } = JSON.parse(await Deno.readTextFile(`${root}deno.json`));
  const [, version] = /@([\d.]+)$/.exec(imports[name]) ?? [];
  return `node_modules/.deno/${name}@${version}/node_modules/${name}/${file}`;
}
