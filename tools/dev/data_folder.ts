import { createHash } from "node:crypto";
import { resolve } from "node:path";
import type { User } from "../servers/child.ts";
import { canEnter, openFolder, unprivilegedUser } from "../servers/other_user.ts";
import { root } from "../root.ts";

export interface DataFolder {
  path: string;
  /** PostgreSQL's data, in another place if its user can't enter the folder. */
  postgres: string;
  nats: string;
  redis: string;
  /** The urls of the servers, with passwords. */
  urls: string;
  /** What the services need to know of each other. */
  secrets: string;
  /** Where the data is, in one line. */
  place: string;
  /** It is this process' alone until this is closed. */
  lock: Deno.FsFile;
}

// The folder with the servers' data, for this process alone: a second process would use the same data,
// or delete it with `--fresh`. The lock ends with the process, however that ends.
export async function takeDataFolder(
  read: (name: string) => string | undefined,
  fresh: boolean,
): Promise<DataFolder> {
  const named = read("KENRI_DATA");
  const path = resolve(named ?? `${root}.kenri/dev`);
  const lock = await lockFolder(path);
  const [inside, nats, redis] = [`${path}/postgres`, `${path}/nats`, `${path}/redis`];
  const [urls, secrets] = [`${path}/urls.env`, `${path}/secrets.json`];
  const outside = await placeOutside();
  if (fresh) {
    for (const old of [inside, nats, redis, urls, secrets]) await remove(old);
    if (Deno.uid() === 0 && named === undefined) await remove(outside);
  }
  const user = await unprivilegedUser(inside);
  if (!user || await canEnter(user, inside)) {
    const place = `The data is in "${path}"`;
    return { path, postgres: inside, nats, redis, urls, secrets, place, lock };
  }
  if (named !== undefined) throw new Error(unreachable(named, user));
  await takeOwnFolder(outside, await unprivilegedUser() ?? user);
  const place = `The data is in "${path}", and PostgreSQL's in "${outside}", because PostgreSQL ` +
    `does not run as root and uid ${user.uid} can't enter the first`;
  return { path, postgres: outside, nats, redis, urls, secrets, place, lock };
}

async function lockFolder(path: string): Promise<Deno.FsFile> {
  const lock = await openLock(path).catch((error) => {
    throw new Error(
      `No data can be kept in "${path}" (${error.message}): set KENRI_DATA to a folder ` +
        "that can be written",
    );
  });
  if (await lock.tryLock(true)) return lock;
  lock.close();
  throw new Error(
    `The data in "${path}" is in use by another \`deno task dev\`: stop it, or set ` +
      "KENRI_DATA to another folder",
  );
}

async function openLock(path: string): Promise<Deno.FsFile> {
  await Deno.mkdir(path, { recursive: true });
  return await Deno.open(`${path}/lock`, { create: true, write: true });
}

/** The same for every start from this clone, and different for every other clone. */
async function placeOutside(): Promise<string> {
  const hash = createHash("sha256").update(await Deno.realPath(root)).digest("hex");
  return `${openFolder}/kenri-data-${hash.slice(0, 16)}`;
}

/** Every user may make folders there, so an existing one is checked. */
export async function takeOwnFolder(path: string, user: User): Promise<void> {
  try {
    await Deno.mkdir(path, { mode: 0o700 });
    return;
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
  const { isDirectory, uid, mode } = await Deno.lstat(path);
  const isOurs = uid === 0 || uid === user.uid;
  if (isDirectory && isOurs && ((mode ?? 0) & 0o077) === 0) return;
  throw new Error(
    `"${path}" is not a folder of uid ${user.uid} that nobody else can enter, so another user may ` +
      "have made it: remove it, or start with --fresh, which removes it too",
  );
}

function unreachable(path: string, { uid }: User): string {
  return `PostgreSQL does not run as root, and uid ${uid}, as which it runs, can't enter "${path}" ` +
    "or a folder above it: set KENRI_DATA to one that every user can enter, or unset it to use " +
    "the default";
}

async function remove(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
