// A copy of the project with some changed files, as an attacker might publish it.
import assert from "node:assert/strict";
import { dirname } from "node:path";
import * as services from "../../services.ts";
import { root } from "../../tools/root.ts";

const parts = ["deno.json", "deno.lock", "node_modules", "services.ts", ...Object.keys(services)]
  .concat("shared", "proto", "client", "ops", "migrations", "tools", "Dockerfile", ".dockerignore");

export interface PlantedProject extends AsyncDisposable {
  path: string;
  /** Runs Deno in the copy and returns all of its output as one text. */
  run(args: string[], env?: Record<string, string>): Promise<{ code: number; said: string }>;
}

/** `files` maps a path to a function that changes its text; a new file starts empty. */
export async function projectWith(
  files: Record<string, (text: string) => string>,
): Promise<PlantedProject> {
  await Deno.mkdir(`${root}.kenri`, { recursive: true });
  const path = await Deno.makeTempDir({ dir: `${root}.kenri`, prefix: "planted-" });
  // There are thousands of files, so the unchanged ones are hard links.
  const { success, stderr } = await new Deno.Command("cp", {
    args: ["-al", ...parts.map((part) => root + part), path],
  }).output();
  // Deno removes its lock when another test no longer needs it.
  const problems = new TextDecoder().decode(stderr).split("\n")
    .filter((line) => line !== "" && !line.includes("/.deno.lock"));
  if (!success && problems.length > 0) {
    await Deno.remove(path, { recursive: true });
    assert.fail(problems.join("\n"));
  }
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
        // A service that starts by mistake would keep running.
        signal: AbortSignal.timeout(60_000),
      }).output();
      return { code, said: [stdout, stderr].map((b) => new TextDecoder().decode(b)).join("") };
    },
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}

/** The file that an import of the package loads first. */
export async function fileOfPackage(name: string, file: string): Promise<string> {
  const { imports } = JSON.parse(await Deno.readTextFile(`${root}deno.json`));
  const [, version] = /@([\d.]+)$/.exec(imports[name]) ?? [];
  return `node_modules/.deno/${name}@${version}/node_modules/${name}/${file}`;
}
