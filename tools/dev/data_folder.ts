import { fileURLToPath } from "node:url";

const standardFolder = fileURLToPath(new URL("../../.kenri/dev", import.meta.url));

// The folder with the servers' data, for this process alone: a second one would take the data from
// under the first, all the more with `--fresh`. The lock goes with the process, however it ends.
export async function takeDataFolder(
  read: (name: string) => string | undefined,
  fresh: boolean,
): Promise<string> {
  const folder = read("KENRI_DATA") ?? standardFolder;
  await Deno.mkdir(folder, { recursive: true });
  const lock = await Deno.open(`${folder}/lock`, { create: true, write: true });
  if (!await lock.tryLock(true)) {
    throw new Error(
      `The data in "${folder}" is in use by another \`deno task dev\`: end that one, or name ` +
        "another folder with KENRI_DATA",
    );
  }
  if (fresh) {
    for (const server of ["postgres", "nats"]) await removeFolder(`${folder}/${server}`);
  }
  return folder;
}

async function removeFolder(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
