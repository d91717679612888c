// Another clone of the project, with the packages and programs of this one.
import assert from "node:assert/strict";
import type { DataFolder } from "./dev.ts";
import { root } from "../../tools/root.ts";

const notCopied = [".git", ".kenri", "node_modules", "dist"];

export interface Clone extends DataFolder {
  clone: string;
}

/** Makes a clone in a folder of this name, below one that only this user can enter. */
export async function makeClone(name: string): Promise<Clone> {
  const above = await Deno.makeTempDir({ prefix: "kenri-clone-" });
  await Deno.chmod(above, 0o700);
  const clone = `${above}/${name}`;
  await Deno.mkdir(`${clone}/.kenri`, { recursive: true });
  const entries = await Array.fromAsync(Deno.readDir(root), (entry) => entry.name);
  const sources = entries.filter((entry) => !notCopied.includes(entry));
  await copy(["-R", ...sources, clone]);
  // Packages are large, so they are hard links if one file system has both.
  await copy(["-a", "-l", "node_modules", clone]).catch(() => copy(["-a", "node_modules", clone]));
  if (entries.includes(".kenri")) {
    await copy(["-R", ".kenri/bin", `${clone}/.kenri`]).catch(() => {});
  }
  const remove = () => Deno.remove(above, { recursive: true });
  return { path: above, clone, [Symbol.asyncDispose]: remove };
}

async function copy(args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("cp", { args, cwd: root }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
}

export async function runTask(
  { clone }: Clone,
  task: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["task", "--quiet", ...task],
    cwd: clone,
    env: { ...env, NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assert.equal(code, 0, text);
  return text;
}
