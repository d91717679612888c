import { reasonOf } from "@kenri/shared/errors";
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
    await applyMigration(owner, file);
    say(`applied ${titleOf(file)} (${Math.round(performance.now() - startedMs)} ms)`);
  }
  if (pending.length > 0) return;
  say(files.length > 0 ? `up to date at ${versionText(files.length)}` : "no migrations yet");
}

async function createHistory(owner: pg.Client): Promise<void> {
  // schema_migrations: which files were applied, so that each is applied once and none is edited.
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

async function applyMigration(owner: pg.Client, file: MigrationFile): Promise<void> {
  await owner.query("begin");
  try {
    await owner.query(file.sql);
    if (owner.getTransactionStatus() !== "T") {
      throw new Error("it ends the transaction that it is applied in");
    }
    await recordMigration(owner, file);
    await owner.query("commit");
  } catch (error) {
    await owner.query("rollback").catch(() => {}); // a lost connection has rolled back already
    throw new Error(`"${fileNameOf(file)}" failed${lineOf(error, file)}: ${reasonOf(error)}`, {
      cause: error,
    });
  }
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

/** PostgreSQL tells the place of a mistake as a count of characters. */
function lineOf(error: unknown, { sql }: MigrationFile): string {
  const position = error instanceof pg.DatabaseError ? Number(error.position) : NaN;
  if (!(position > 0)) return "";
  const before = Array.from(sql).slice(0, position - 1);
  return ` at line ${before.filter((character) => character === "\n").length + 1}`;
}
