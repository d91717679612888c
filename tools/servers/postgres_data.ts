// PostgreSQL's data folder and its password.
import { startChild, type User } from "./child.ts";
import { runAs } from "./other_user.ts";
import { keepPassword, writeSecret } from "./password.ts";
import type { PostgresPrograms } from "./postgres_program.ts";
import type { RunFolder } from "./run_folder.ts";

interface Data {
  dataDir: string;
  password: string;
  user: User | undefined;
  /** Whether it is kept for another run. */
  kept: boolean;
}

/** The order of texts is that of their bytes on every machine, whatever its locales. */
function localeArguments(major: number): string[] {
  if (major < 17) return ["--locale", "C.UTF-8"];
  return ["--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"];
}

export async function initdb(
  { dataDir, password, user, kept }: Data,
  { bin, major }: PostgresPrograms,
  run: RunFolder,
): Promise<void> {
  const passwordFile = `${run.path}/password`;
  await writeSecret(passwordFile, user, password);
  const child = await startChild({
    program: `${bin}/initdb`,
    args: [
      ...["--pgdata", dataDir, "--username", "postgres", "--encoding", "UTF8"],
      ...["--auth", "scram-sha-256", "--pwfile", passwordFile],
      ...localeArguments(major),
      // More rounds make guessing expensive, but each connection too. 192 random bits can't be
      // guessed.
      ...(major >= 16 ? ["--set", "scram_iterations=1"] : []),
      ...["--no-sync", "--no-instructions"],
    ],
    runFolder: run.path,
    workFolder: dataDir,
    lastSignal: "SIGTERM",
    user,
  });
  if (await child.exited !== 0) {
    throw new Error(`initdb failed in "${dataDir}":\n${await child.lastLines()}`);
  }
  if (kept) await keepPassword(dataDir, user, password);
}

const passwordForAll = "host all all 127.0.0.1/32 scram-sha-256\n";

/** Statements for the single-user mode, where an empty line ends each. The passwords are those of `passwordOf`. */
function passwordsForAll(password: string): string {
  return `
alter role postgres password '${password}';

do $$
declare
  role text;
begin
  for role in select rolname from pg_roles where rolcanlogin and rolname <> 'postgres' loop
    execute format('alter role %I password %L', role,
      encode(sha256(convert_to('${password}:' || role, 'UTF8')), 'hex'));
  end loop;
end $$;

`;
}

/**
 * For data that an earlier version made, which let every local user in as administrator. PostgreSQL
 * is not running yet, so the password is set in its single-user mode, which asks for none.
 */
export async function requirePassword(
  { dataDir, password, user }: Data,
  { bin }: PostgresPrograms,
): Promise<void> {
  await writeSecret(`${dataDir}/pg_hba.conf`, user, passwordForAll);
  const { success, stderr } = await runAs(
    user,
    `${bin}/postgres`,
    ["--single", "-j", "-D", dataDir, "-c", "log_min_messages=error", "postgres"],
    passwordsForAll(password),
  );
  if (!success || /\b(ERROR|FATAL|PANIC):/.test(stderr)) {
    const reason = stderr.trim().split("\n").find((line) => /(ERROR|FATAL|PANIC):/.test(line));
    throw new Error(
      `The data in "${dataDir}" got no password (${
        reason ?? "PostgreSQL ended at once"
      }). If its ` +
        "first start was cut off, begin without it: --fresh, or another folder",
    );
  }
  await keepPassword(dataDir, user, password);
}
