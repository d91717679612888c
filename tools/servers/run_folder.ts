import { apart, type User } from "./child.ts";
import { SWEEPER } from "./minder.ts";
import { makeTempFolder } from "./other_user.ts";

/** A temporary folder that is removed with its owner, however the owner ends. */
export interface RunFolder {
  readonly path: string;
  remove(): Promise<void>;
}

export async function makeRunFolder(prefix: string, user?: User): Promise<RunFolder> {
  const path = await makeTempFolder(`kenri-${prefix}-`, user);
  const sweeper = new Deno.Command("sh", {
    args: ["-c", SWEEPER, "sweeper", path],
    stdin: "piped",
    stdout: "null",
    stderr: "null",
    detached: true,
    ...apart(),
  }).spawn();
  sweeper.unref();
  let removed: Promise<void> | undefined;

  async function remove(): Promise<void> {
    sweeper.ref();
    await sweeper.stdin.close();
    await sweeper.status;
  }

  return { path, remove: () => removed ??= remove() };
}
