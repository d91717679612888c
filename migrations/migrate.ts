// deno task migrate: brings both databases up to date. It may run at any time, any number of times
// at once. The owner's URL must lead to PostgreSQL itself and not to a pooler that shares sessions,
// because the lock belongs to the session.
import { environment, SettingsError } from "@kenri/shared/process/settings.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import { readWithin } from "@kenri/shared/process/program.ts";
import type { TlsSource } from "@kenri/shared/postgres/tls.ts";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type pg from "pg";
import { applyMigrations } from "./apply.ts";
import { readDatabaseUrls } from "./config.ts";
import { readMigrations } from "./files.ts";
import { connectOwner } from "./owner.ts";
import { program } from "./program.ts";
import { grantServiceRole } from "./service_role.ts";

export interface Migration {
  /** Contains NNNN_name.sql and grants.sql. Its last part names the service in the output. */
  folder: string;
  ownerUrl: string;
  serviceUrl: string;
  /** The minimum time for which the service keeps its audit, if it has one. */
  auditMonths?: number;
  tls?: TlsSource;
  say: (line: string) => void;
  /** How long to wait for a server that does not answer yet. */
  waitMs?: number;
}

// Services and servers are often started together, and a server with much to recover takes a while.
const defaultWaitMs = 30_000;
const lockRetryMs = 100;

export async function migrate(
  { folder, ownerUrl, serviceUrl, auditMonths, tls, say, waitMs = defaultWaitMs }: Migration,
): Promise<void> {
  const sayOfService = (line: string) => say(`${basename(folder)}: ${line}`);
  const { files, grants } = await readMigrations(folder);
  const owner = await connectOwner({ url: ownerUrl, tls }, waitMs, sayOfService);
  try {
    await takeLock(owner);
    await applyMigrations(owner, files, sayOfService);
    if (auditMonths !== undefined) await keepAudit(owner, auditMonths);
    await grantServiceRole(owner, serviceUrl, grants, sayOfService);
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

/** The owner decides this, because the service can delete old audit rows. */
async function keepAudit(owner: pg.Client, months: number): Promise<void> {
  await owner.query("update audit_retention set keep_months = $1", [months]);
}

async function migrateAll(): Promise<void> {
  const beside = fileURLToPath(new URL(".", import.meta.url)).replace(/\/$/, "");
  const databases = readWithin(program, readDatabaseUrls, environment, beside);
  for (const { service, ...settings } of databases) {
    const folder = fileURLToPath(new URL(service, import.meta.url));
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
