import { reasonOf } from "@kenri/shared/process/reason.ts";
import { isUnavailable, serverOf } from "@kenri/shared/postgres/postgres.ts";
import { isDistrust, type TlsSource } from "@kenri/shared/postgres/tls.ts";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const retryMs = 250;
const sayEveryMs = 5_000;
const connectTimeoutMs = 5_000;

// Overrides what the owner's role or database presets: statements may take long, tables go to
// public.
const session = `
  set statement_timeout = 0;
  set lock_timeout = 0;
  set idle_in_transaction_session_timeout = 0;
  set search_path = public;
`;

const databaseIsMissing = "3D000";
const duplicateDatabase = "42P04";
const uniqueViolation = "23505"; // another session created the same database at the same time

interface Access {
  url: string;
  tls?: TlsSource | undefined;
}

/** Waits until the server answers, and creates a missing database. */
export async function connectOwner(
  access: Access,
  waitMs: number,
  say: (line: string) => void,
): Promise<pg.Client> {
  try {
    return await connectWhenUp(access, waitMs, say);
  } catch (error) {
    if (codeOf(error) !== databaseIsMissing) throw error;
    await createDatabase(access, say);
    return await connectWhenUp(access, waitMs, say);
  }
}

async function connectWhenUp(
  access: Access,
  waitMs: number,
  say: (line: string) => void,
): Promise<pg.Client> {
  const deadline = Date.now() + waitMs;
  for (let nextSay = Date.now();;) {
    try {
      return await connect(access);
    } catch (error) {
      if (!isUnavailable(error) || isDistrust(error)) throw error;
      const now = Date.now();
      if (now >= deadline) {
        throw new Error(`PostgreSQL did not answer for ${waitMs / 1000} s: ${causeOf(error)}`);
      }
      if (now >= nextSay) {
        say(`waiting for PostgreSQL: ${causeOf(error)}`);
        nextSay = now + sayEveryMs;
      }
      await sleep(retryMs);
    }
  }
}

async function connect({ url, tls }: Access): Promise<pg.Client> {
  const client = new pg.Client({
    ...serverOf(url, tls),
    application_name: "kenri-migrate",
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
  });
  // The statement that uses a lost connection fails; without a listener the process would end, too.
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query(session);
    return client;
  } catch (error) {
    await client.end();
    throw error;
  }
}

async function createDatabase(access: Access, say: (line: string) => void): Promise<void> {
  const { user, database } = new pg.Client({ connectionString: access.url });
  // From template0, because template1 may have another encoding or be in use.
  const statement = (owner: string) =>
    `create database ${pg.escapeIdentifier(database ?? "")}${owner}` +
    ` template template0 encoding 'UTF8'`;
  try {
    await runInMaintenanceDatabase(access, statement(""));
    say(`created the database "${database}"`);
  } catch (error) {
    const code = codeOf(error);
    if (code === duplicateDatabase || code === uniqueViolation) return;
    const byHand = statement(` owner ${pg.escapeIdentifier(user ?? "")}`);
    throw new Error(
      `The database "${database}" does not exist and "${user}" can't create it (${
        causeOf(error)
      }). ` +
        `Run as an administrator: ${byHand}`,
      { cause: error },
    );
  }
}

async function runInMaintenanceDatabase(access: Access, statement: string): Promise<void> {
  const maintenance = new URL(access.url);
  maintenance.pathname = "/postgres";
  const client = await connect({ ...access, url: maintenance.href });
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/** If a name has several addresses, the error has one error for each and no message itself. */
function causeOf(error: unknown): string {
  return reasonOf(error instanceof AggregateError ? error.errors[0] : error);
}
