// A copy of the project in which files may be changed and tests may write.
import { cp, mkdir, symlink } from "node:fs/promises";
import { root } from "../root.ts";
import { makeRunFolder } from "../servers/run_folder.ts";

/** These are large and the same for every copy: packages and fetched server programs. */
const linked = ["node_modules", ".kenri/bin"];
const leftOut = new Set([".git", ".kenri", "node_modules", "dist"]);

export interface Tree {
  path: string;
  remove(): Promise<void>;
}

export async function copyProject(): Promise<Tree> {
  const folder = await makeRunFolder("mutants");
  const path = `${folder.path}/kenri`;
  const isWanted = (source: string) => !leftOut.has(source.slice(root.length));
  await cp(root, path, { recursive: true, filter: isWanted });
  await mkdir(`${path}/.kenri`);
  for (const name of linked) await symlink(`${root}${name}`, `${path}/${name}`);
  return { path, remove: folder.remove };
}
