import { apart, type User } from "./child.ts";
import { SWEEPER } from "./minder.ts";

/** The variable that names the folder for the data of temporary servers, if not the usual one. */
export const serversFolder = "KENRI_TEST_SERVERS_FOLDER";

/** A temporary folder that is removed with its owner, however the owner ends. */
export interface RunFolder {
  readonly path: string;
  remove(): Promise<void>;
}

export async function makeRunFolder(prefix: string, user?: User): Promise<RunFolder> {
  const dir = Deno.env.get(serversFolder);
  const path = await Deno.makeTempDir({ ...(dir && { dir }), prefix: `kenri-${prefix}-` });
  if (user) await Deno.chown(path, user.uid, user.gid);
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
