// Brings both databases up to date: `deno task migrate`. Safe to run at any time, by any number of
// replicas at once. The owner's url must lead to PostgreSQL itself and not to a pooler that shares
// sessions, because the lock belongs to the session.
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
  /** Holds NNNN_name.sql and grants.sql; its last part names the service in what is said. */
  folder: string;
  ownerUrl: string;
  serviceUrl: string;
  /** How long the service has to keep the audit at least, where there is one. */
  auditMonths?: number;
  tls?: TlsSource;
  say: (line: string) => void;
  /** How long a server that is not there yet is waited for. */
  waitMs?: number;
}

// Services and servers are often started together; a server with much to recover takes a while.
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
    await owner.end(); // and with the session goes the lock
  }
}

/**
 * Asked for again and again: a statement that waits for it would be a transaction, and an index that
 * is built concurrently waits until older transactions have ended.
 */
async function takeLock(owner: pg.Client): Promise<void> {
  const lock = "select pg_try_advisory_lock(hashtextextended('kenri migrations', 0)) as taken";
  while (!(await owner.query<{ taken: boolean }>(lock)).rows[0]?.taken) await sleep(lockRetryMs);
}

/** Said by the owner, because who can delete the audit is not to say how long it is kept. */
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
  // A connection with TLS does not (Deno 2.9.6), and the process would end while it waits for one.
  const staysAlive = setInterval(() => {}, 1_000);
  try {
    await migrateAll();
  } catch (error) {
    console.error(error instanceof SettingsError ? error.message : reasonOf(error));
    Deno.exit(1);
  }
  clearInterval(staysAlive);
}
