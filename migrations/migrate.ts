// deno task migrate: brings every database whose url is set up to date. It may run at any time, any
// number of times at once. The owner's URL must lead to PostgreSQL itself and not to a pooler that shares sessions,
// because the lock belongs to the session.
import * as services from "@kenri/services.ts";
import { environment, SettingsError } from "@kenri/shared/process/settings.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import { environmentName, readWithin } from "@kenri/shared/process/program.ts";
import type { TlsSource } from "@kenri/shared/postgres/tls.ts";
import { basename, dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type pg from "pg";
import { applyMigrations } from "./apply.ts";
import { readDatabaseUrls } from "./config.ts";
import { ownerSettingsFile, readMigrations } from "./files.ts";
import { connectOwner } from "./owner.ts";
import { migrationsIn, program, withDatabase } from "./program.ts";
import { grantServiceRole } from "./service_role.ts";

export interface Migration {
  /**
   * Contains NNNN_name.sql, grants.sql and, if the owner has settings, owner_settings.sql. The folder
   * around it names the service in the output.
   */
  folder: string;
  ownerUrl: string;
  serviceUrl: string;
  /** The values for owner_settings.sql, which is left out without them. */
  ownerSettings?: Record<string, number>;
  tls?: TlsSource;
  say: (line: string) => void;
  /** How long to wait for a server that does not answer yet. */
  waitMs?: number;
}

// Services and servers are often started together, and a server with much to recover takes a while.
const defaultWaitMs = 30_000;
const lockRetryMs = 100;
// In a bundle the folders of the services are beside this file.
const root = fileURLToPath(
  new URL(import.meta.filename?.endsWith(".js") ? "." : "..", import.meta.url),
).replace(/\/$/, "");

export async function migrate(
  { folder, ownerUrl, serviceUrl, ownerSettings, tls, say, waitMs = defaultWaitMs }: Migration,
): Promise<void> {
  const sayOfService = (line: string) => say(`${basename(dirname(folder))}: ${line}`);
  const migrations = await readMigrations(folder);
  const owner = await connectOwner({ url: ownerUrl, tls }, waitMs, sayOfService);
  try {
    await takeLock(owner);
    await applyMigrations(owner, migrations.files, sayOfService);
    if (ownerSettings) await owner.query(withValues(migrations.ownerSettings, ownerSettings));
    await grantServiceRole(owner, serviceUrl, migrations.grants, sayOfService);
  } finally {
    await owner.end(); // the lock ends with the session
  }
}

/**
 * Tries again and again instead of waiting in one statement: that statement would be an open
 * transaction, and an index that is built concurrently waits for all older transactions.
 */
async function takeLock(owner: pg.Client): Promise<void> {
  const lock = "select pg_try_advisory_lock(hashtextextended('kenri migrations', 0)) as taken";
  while (!(await owner.query<{ taken: boolean }>(lock)).rows[0]?.taken) await sleep(lockRetryMs);
}

/** `:retention_audit_months` stands for the setting `retention.audit-months`. */
function withValues(sql: string, values: Record<string, number>): string {
  const byName = new Map(
    Object.entries(values).map(([key, value]) => [key.replaceAll(/[.-]/g, "_"), value]),
  );
  return sql.replaceAll(/(?<!:):(\w+)/g, (_, name) => {
    const value = byName.get(name);
    if (value === undefined) throw new Error(`${ownerSettingsFile} uses the unknown ":${name}"`);
    return `${value}`;
  });
}

async function migrateAll(): Promise<void> {
  const databases = readWithin(program, readDatabaseUrls, environment, root);
  for (const { name } of withDatabase(services)) {
    if (databases.some(({ service }) => service === name)) continue;
    console.log(`${name}: left out, because ${environmentName(`${name}.database.url`)} is not set`);
  }
  for (const { service, ...settings } of databases) {
    const folder = `${root}/${migrationsIn(service)}`;
    try {
      await migrate({ folder, ...settings, say: (line) => console.log(line) });
    } catch (error) {
      throw new Error(`${service}: ${reasonOf(error)}`, { cause: error });
    }
  }
}

if (import.meta.main) {
  // Waiting for a TLS connection does not keep the process alive (Deno 2.9.6).
  const staysAlive = setInterval(() => {}, 1_000);
  try {
    await migrateAll();
  } catch (error) {
    console.error(error instanceof SettingsError ? error.message : reasonOf(error));
    Deno.exit(1);
  }
  clearInterval(staysAlive);
}
