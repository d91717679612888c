import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

export interface MigrationFile {
  version: number;
  name: string;
  checksum: string;
  sql: string;
  /** Whether it is applied as a whole or, as its first words say, statement by statement. */
  inTransaction: boolean;
}

export interface AppliedMigration {
  version: number;
  name: string;
  checksum: string;
}

export interface Migrations {
  files: MigrationFile[];
  grants: string;
}

export const grantsFile = "grants.sql";

export async function readMigrations(folder: string): Promise<Migrations> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql")).sort();
  const files = await Promise.all(
    names.filter((name) => name !== grantsFile).map((name) => readMigration(folder, name)),
  );
  // A service that has no tables yet has nothing to be granted either.
  const grants = files.length > 0 ? await readFile(join(folder, grantsFile), "utf8") : "";
  return { files, grants };
}

async function readMigration(folder: string, fileName: string): Promise<MigrationFile> {
  const [, number, name] = /^(\d{4})_([a-z0-9_]+)\.sql$/.exec(fileName) ?? [];
  if (number === undefined || name === undefined) {
    throw new Error(`"${fileName}" is not named like a migration: NNNN_name.sql`);
  }
  // A checkout with Windows line ends is not an edit.
  const sql = (await readFile(join(folder, fileName), "utf8")).replaceAll("\r\n", "\n");
  const checksum = createHash("sha256").update(sql).digest("hex");
  const inTransaction = !/^-- without a transaction\b/i.test(sql);
  return { version: Number(number), name, checksum, sql, inTransaction };
}

/** What is still to be applied. Refuses a history that the files do not explain. */
export function pendingOf(files: MigrationFile[], applied: AppliedMigration[]): MigrationFile[] {
  refuseDuplicates(files);
  for (const row of applied) refuseOtherHistory(files, row);
  refuseGaps(files);
  refuseOvertaking(files, applied);
  return files.slice(applied.length);
}

function refuseDuplicates(files: MigrationFile[]): void {
  for (const [index, file] of files.entries()) {
    const twin = files[index + 1];
    if (twin?.version === file.version) {
      throw new Error(`"${fileNameOf(file)}" and "${fileNameOf(twin)}" have the same number`);
    }
  }
}

function refuseOtherHistory(files: MigrationFile[], row: AppliedMigration): void {
  const last = files.at(-1);
  if (row.version > (last?.version ?? 0)) {
    throw new Error(
      `The database is newer than the files, which end at ${versionText(last?.version ?? 0)}: ` +
        `"${fileNameOf(row)}" was applied to it and is not there`,
    );
  }
  const file = files.find(({ version, name }) => version === row.version && name === row.name);
  if (!file) throw new Error(`"${fileNameOf(row)}" was applied, but the file has vanished`);
  if (file.checksum !== row.checksum) {
    throw new Error(
      `"${fileNameOf(row)}" was edited after it had been applied: undo the edit and add a new file`,
    );
  }
}

function refuseGaps(files: MigrationFile[]): void {
  for (const [index, file] of files.entries()) {
    if (file.version === index + 1) continue;
    throw new Error(
      `No file has the number ${versionText(index + 1)} before "${fileNameOf(file)}"`,
    );
  }
}

function refuseOvertaking(files: MigrationFile[], applied: AppliedMigration[]): void {
  for (const [index, row] of applied.entries()) {
    const file = files[index];
    if (!file || row.version === file.version) continue;
    throw new Error(
      `"${fileNameOf(row)}" was applied, but "${fileNameOf(file)}" before it was not`,
    );
  }
}

export function fileNameOf(migration: AppliedMigration): string {
  return `${titleOf(migration)}.sql`;
}

export function titleOf({ version, name }: AppliedMigration): string {
  return `${versionText(version)}_${name}`;
}

export function versionText(version: number): string {
  return String(version).padStart(4, "0");
}
