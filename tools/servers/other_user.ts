// PostgreSQL refuses to run as root. So under root it runs as another user, which can use only files
// that this user can reach. The functions of this file give it what it needs.
import { apart, type User } from "./child.ts";

/** Every user may enter it, even if TMPDIR or the project is in a folder that only root can enter. */
export const openFolder = "/var/tmp";

/** The user for PostgreSQL: who owns the data, else `postgres` or `nobody`. */
export async function unprivilegedUser(dataDir?: string): Promise<User | undefined> {
  if (Deno.uid() !== 0) return undefined;
  const owner = dataDir && await Deno.stat(dataDir).catch(() => undefined);
  if (owner && owner.uid) return { uid: owner.uid, gid: owner.gid ?? owner.uid };
  const users = (await Deno.readTextFile("/etc/passwd")).split("\n").map((line) => line.split(":"));
  for (const name of ["postgres", "nobody"]) {
    const [, , uid, gid] = users.find((fields) => fields[0] === name) ?? [];
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error('PostgreSQL refuses root and there is no user "postgres" or "nobody"');
}

export async function canReach(user: User, path: string): Promise<boolean> {
  const test = new Deno.Command("test", { args: ["-x", path], ...user, ...apart() });
  return (await test.output()).success;
}

/** The folder itself, or where it would be made: the nearest one above it that exists. */
export async function canEnter(user: User, path: string): Promise<boolean> {
  for (let folder = path;; folder = folder.slice(0, folder.lastIndexOf("/"))) {
    if (folder === "") return true;
    if (await Deno.stat(folder).then(() => true, () => false)) return await canReach(user, folder);
  }
}

/** A new folder that belongs to the user, in `dir` or TMPDIR if the user can reach that. */
export async function makeTempFolder(
  options: { dir?: string; prefix: string },
  user?: User,
): Promise<string> {
  const path = await Deno.makeTempDir(options);
  if (!user) return path;
  await Deno.chown(path, user.uid, user.gid);
  if (await canReach(user, path)) return path;
  await Deno.remove(path);
  const open = await Deno.makeTempDir({ ...options, dir: openFolder });
  await Deno.chown(open, user.uid, user.gid);
  return open;
}

/**
 * Runs a program as the user, with a text on its stdin. Files in folders of another user are read and
 * written in this way, so that a link that the user put there can't mislead root.
 */
export async function runAs(
  user: User | undefined,
  program: string,
  args: string[],
  input = "",
): Promise<{ success: boolean; stdout: string; stderr: string }> {
  const child = new Deno.Command(program, {
    args,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    ...user,
    ...apart(),
  }).spawn();
  const output = child.output();
  const stdin = child.stdin.getWriter();
  await stdin.write(new TextEncoder().encode(input)).catch(() => {});
  await stdin.close().catch(() => {});
  const { success, stdout, stderr } = await output;
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { success, stdout: text(stdout), stderr: text(stderr) };
}
