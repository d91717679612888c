import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

export interface MigrationFile {
  version: number;
  name: string;
  checksum: string;
  sql: string;
  /** False if it begins with "Without a transaction" and is applied statement by statement. */
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
  ownerSettings: string;
}

export const grantsFile = "grants.sql";
export const ownerSettingsFile = "owner_settings.sql";

export async function readMigrations(folder: string): Promise<Migrations> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql")).sort();
  const repeated = [grantsFile, ownerSettingsFile]; // after each migration
  const files = await Promise.all(
    names.filter((name) => !repeated.includes(name)).map((name) => readMigration(folder, name)),
  );
  const hasOwnerSettings = names.includes(ownerSettingsFile);
  return {
    files,
    // Without tables there are no grants either.
    grants: files.length > 0 ? await readFile(join(folder, grantsFile), "utf8") : "",
    ownerSettings: hasOwnerSettings ? await readFile(join(folder, ownerSettingsFile), "utf8") : "",
  };
}

async function readMigration(folder: string, fileName: string): Promise<MigrationFile> {
  const [, number, name] = /^(\d{4})_([a-z0-9_]+)\.sql$/.exec(fileName) ?? [];
  if (number === undefined || name === undefined) {
    throw new Error(`"${fileName}" must have a name of the form NNNN_name.sql`);
  }
  // Windows line endings are not an edit.
  const sql = (await readFile(join(folder, fileName), "utf8")).replaceAll("\r\n", "\n");
  const checksum = createHash("sha256").update(sql).digest("hex");
  const inTransaction = !/^-- without a transaction\b/i.test(sql);
  return { version: Number(number), name, checksum, sql, inTransaction };
}

/** The files that are still to be applied. Throws if the history does not match the files. */
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
        `"${fileNameOf(row)}" was applied to it and is missing here`,
    );
  }
  const file = files.find(({ version, name }) => version === row.version && name === row.name);
  if (!file) throw new Error(`"${fileNameOf(row)}" was applied, but the file is missing`);
  if (file.checksum !== row.checksum) {
    throw new Error(
      `"${fileNameOf(row)}" was edited after it was applied: undo the edit and add a new file`,
    );
  }
}

function refuseGaps(files: MigrationFile[]): void {
  for (const [index, file] of files.entries()) {
    if (file.version === index + 1) continue;
    throw new Error(
      `The file number ${versionText(index + 1)} is missing before "${fileNameOf(file)}"`,
    );
  }
}

function refuseOvertaking(files: MigrationFile[], applied: AppliedMigration[]): void {
  for (const [index, row] of applied.entries()) {
    const file = files[index];
    if (!file || row.version === file.version) continue;
    throw new Error(
      `"${fileNameOf(row)}" was applied, but the earlier "${fileNameOf(file)}" was not`,
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
