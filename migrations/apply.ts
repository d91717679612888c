import { reasonOf } from "@kenri/shared/process/reason.ts";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { AppliedMigration, MigrationFile } from "./files.ts";
import { fileNameOf, pendingOf, titleOf, versionText } from "./files.ts";

export async function applyMigrations(
  owner: pg.Client,
  files: MigrationFile[],
  say: (line: string) => void,
): Promise<void> {
  await createHistory(owner);
  const pending = pendingOf(files, await readHistory(owner));
  for (const file of pending) {
    const startedMs = performance.now();
    await applyMigration(owner, file, say);
    say(`applied ${titleOf(file)} (${Math.round(performance.now() - startedMs)} ms)`);
  }
  if (pending.length > 0) return;
  say(files.length > 0 ? `up to date at ${versionText(files.length)}` : "no migrations yet");
}

async function createHistory(owner: pg.Client): Promise<void> {
  // schema_migrations records the applied files, so that each is applied once and none is edited.
  await owner.query(`
    create table if not exists schema_migrations (
      version integer primary key check (version >= 1),
      name text not null,
      checksum text not null,
      applied_at timestamptz not null default now()
    )`);
}

async function readHistory(owner: pg.Client): Promise<AppliedMigration[]> {
  const { rows } = await owner.query<AppliedMigration>(`
    select version, name, checksum
    from schema_migrations
    order by version`);
  return rows;
}

async function applyMigration(
  owner: pg.Client,
  file: MigrationFile,
  say: (line: string) => void,
): Promise<void> {
  try {
    if (!file.inTransaction) return await applyOneByOne(owner, file);
    while (!await applyAtOnce(owner, file)) {
      say(`${titleOf(file)} needs a lock that a transaction holds: trying again`);
      await sleep(lockRetryMs);
    }
  } catch (error) {
    throw new Error(`"${fileNameOf(file)}" failed${lineOf(error, file)}: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

// While we wait for a lock, everybody who needs the table waits behind us, so we give up before
// callers notice. The time is longer than the second after which PostgreSQL cancels a vacuum that
// is in our way.
const lockTimeoutMs = 2_000;
const lockRetryMs = 3_000;
const lockNotAvailable = "55P03";

/** Returns whether it got its locks in time. */
async function applyAtOnce(owner: pg.Client, file: MigrationFile): Promise<boolean> {
  await owner.query("begin");
  try {
    await owner.query(`set local lock_timeout = ${lockTimeoutMs}`);
    await owner.query(file.sql);
    if (owner.getTransactionStatus() !== "T") {
      throw new Error("it ends the transaction in which it is applied");
    }
    await recordMigration(owner, file);
    await owner.query("commit");
    return true;
  } catch (error) {
    await owner.query("rollback").catch(() => {}); // a lost connection was rolled back by the server
    if (error instanceof pg.DatabaseError && error.code === lockNotAvailable) return false;
    throw error;
  }
}

/** After a failure it starts from the first statement, so each statement must be repeatable. */
async function applyOneByOne(owner: pg.Client, file: MigrationFile): Promise<void> {
  const statements = file.sql.split(/;\s*$/m).filter((text) => text.trim() !== "");
  for (const statement of statements) await owner.query(statement);
  await recordMigration(owner, file);
}

async function recordMigration(
  owner: pg.Client,
  { version, name, checksum }: MigrationFile,
): Promise<void> {
  await owner.query(
    `
    insert into schema_migrations (version, name, checksum)
    values ($1, $2, $3)`,
    [version, name, checksum],
  );
}

/** PostgreSQL reports the position of an error as a number of characters. */
function lineOf(error: unknown, { sql }: MigrationFile): string {
  const position = error instanceof pg.DatabaseError ? Number(error.position) : NaN;
  if (!(position > 0)) return "";
  const before = Array.from(sql).slice(0, position - 1);
  return ` at line ${before.filter((character) => character === "\n").length + 1}`;
}
