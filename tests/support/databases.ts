// Databases for tests, on the server that KENRI_TEST_POSTGRES_URL names or, without it, on a new
// one.
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { migrate } from "../../migrations/migrate.ts";
import { admitToDatabase } from "../../migrations/service_role.ts";
import { type Database, openDatabase } from "../../shared/postgres/postgres.ts";
import { type PostgresServer, startPostgres } from "../../tools/servers/postgres.ts";
import { plantedPassword } from "../../tools/planted.ts";
import { withClient } from "../../tools/servers/asking.ts";
import { keepErrors } from "../../tools/servers/evidence.ts";
import { makeDatabase, migrationsOf } from "../../tools/servers/databases.ts";
import type { ServiceName } from "../../tools/services.ts";

export { withClient };

export interface TestDatabase extends AsyncDisposable {
  ownerUrl: string;
  serviceUrl: string;
  drop(): Promise<void>;
}

/** The URL of the server, with its administrator as the user. */
export const serverUrl = Deno.env.get("KENRI_TEST_POSTGRES_URL") ?? await startOwnServer();

async function startOwnServer(): Promise<string> {
  const server = await startPostgres();
  Deno.test.afterAll(() => server.close());
  return server.url;
}

/** A new migrated database, ready for the service. */
export function freshDatabase(service: ServiceName): Promise<TestDatabase> {
  return freshDatabaseOf(service, migrationsOf(service));
}

/** The same for a service that is not listed. */
export async function freshDatabaseOf(service: string, migrations: string): Promise<TestDatabase> {
  const template = await templateOf(service, migrations);
  const database = uniqueName(service);
  await withClient(serverUrl, async (admin) => {
    await admin.query(
      `create database ${pg.escapeIdentifier(database)} template ${pg.escapeIdentifier(template)}`,
    );
    await admitToDatabase(admin, database, roleOf(service));
  });
  const drop = async () => {
    await keepErrors(urlOf({ database }));
    await dropDatabase(database);
  };
  return {
    ownerUrl: urlOf({ database }),
    serviceUrl: serviceUrlOf(service, database),
    drop,
    [Symbol.asyncDispose]: drop,
  };
}

export interface Opened extends AsyncDisposable {
  database: Database; // the service's pool
  ownerUrl: string;
}

/** A new migrated database, with a pool as the service opens it. */
export async function openFresh(service: ServiceName): Promise<Opened> {
  const { ownerUrl, serviceUrl, drop } = await freshDatabase(service);
  const database = openDatabase(serviceUrl, "test");
  return {
    database,
    ownerUrl,
    [Symbol.asyncDispose]: async () => {
      await database.end();
      await drop();
    },
  };
}

export interface OwnDatabase extends AsyncDisposable {
  server: PostgresServer;
  ownerUrl: string;
  serviceUrl: string;
}

/** A database on a server of its own, for tests that stop the server. */
export async function ownDatabase(service: ServiceName = "entitlement"): Promise<OwnDatabase> {
  const server = await startPostgres();
  const urls = await makeDatabase(server, service);
  return { server, ...urls, [Symbol.asyncDispose]: () => server.close() };
}

const templates = new Map<string, Promise<string>>();

function templateOf(service: string, migrations: string): Promise<string> {
  const known = templates.get(service) ?? makeTemplate(service, migrations);
  templates.set(service, known);
  return known;
}

/** Makes the template once per server and state of the migrations. It gets its name when it is complete. */
async function makeTemplate(service: string, folder: string): Promise<string> {
  const template = `kenri_template_${service}_${await hashOf(folder)}`;
  await withClient(serverUrl, async (admin) => {
    await admin.query("select pg_advisory_lock(hashtextextended('kenri test templates', 0))");
    if (await databaseExists(admin, template)) return;
    const unfinished = `${template}_unfinished`;
    await admin.query(`drop database if exists ${unfinished} with (force)`);
    await migrate({
      folder,
      ownerUrl: urlOf({ database: unfinished }),
      serviceUrl: serviceUrlOf(service, unfinished),
      say: () => {},
    });
    await admin.query(`alter database ${unfinished} rename to ${template}`);
  });
  return template;
}

async function databaseExists(admin: pg.Client, database: string): Promise<boolean> {
  const found = await admin.query("select from pg_database where datname = $1", [database]);
  return found.rowCount === 1;
}

async function hashOf(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const name of (await readdir(folder)).sort()) {
    hash.update(name).update(await readFile(join(folder, name)));
  }
  return hash.digest("hex").slice(0, 16);
}

export function uniqueName(prefix: string): string {
  return `kenri_${prefix}_${crypto.randomUUID().replaceAll("-", "").slice(0, 20)}`;
}

function roleOf(service: string): string {
  return `kenri_test_${service}`;
}

function serviceUrlOf(service: string, database: string): string {
  return urlOf({ database, user: roleOf(service), password: plantedPassword });
}

/** The administrator's url, with the given parts replaced. */
export function urlOf(
  { database, user, password }: { database: string; user?: string; password?: string },
): string {
  const url = new URL(serverUrl);
  url.pathname = `/${encodeURIComponent(database)}`;
  if (user !== undefined) {
    url.username = encodeURIComponent(user);
    url.password = encodeURIComponent(password ?? "");
  }
  return url.href;
}

export async function dropDatabase(database: string): Promise<void> {
  await withClient(serverUrl, async (admin) => {
    await admin.query(`drop database if exists ${pg.escapeIdentifier(database)} with (force)`);
  });
}

/** Drops a role. The databases in which it has rights must be dropped before. */
export async function dropRole(role: string): Promise<void> {
  await withClient(serverUrl, async (admin) => {
    await admin.query(`drop role if exists ${pg.escapeIdentifier(role)}`);
  });
}
