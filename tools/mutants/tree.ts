// A copy of the project, in which files may be broken and tests may write.
import { cp, mkdir, symlink } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { makeRunFolder } from "../servers/run_folder.ts";

export const projectRoot = fileURLToPath(new URL("../../", import.meta.url));

/** Large, and the same for every copy: packages and the server programs that were fetched. */
const linked = ["node_modules", ".kenri/bin"];
const leftOut = new Set([".git", ".kenri", "node_modules", "dist"]);

export interface Tree {
  path: string;
  remove(): Promise<void>;
}

export async function copyProject(): Promise<Tree> {
  const folder = await makeRunFolder("mutants");
  const path = `${folder.path}/kenri`;
  const isWanted = (source: string) => !leftOut.has(source.slice(projectRoot.length));
  await cp(projectRoot, path, { recursive: true, filter: isWanted });
  await mkdir(`${path}/.kenri`);
  for (const name of linked) await symlink(`${projectRoot}${name}`, `${path}/${name}`);
  return { path, remove: folder.remove };
}
