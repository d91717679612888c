import type { Duplex } from "node:stream";
import { setImmediate } from "node:timers";
import pg from "pg";
import { isEncryptedDatabase } from "../process/server_urls.ts";
import { Sql } from "./sql.ts";
import { tlsOptions, type TlsSource } from "./tls.ts";

export type Database = pg.Pool;
export type Transaction = pg.PoolClient;
export type Session = pg.PoolClient; // a connection outside of a transaction

const poolSize = 10;
// How long a request waits for a connection and for a statement; then the client should retry.
const connectTimeoutMs = 3_000;
const statementTimeoutMs = 10_000;

// The services only look up rows by key and claim by index. A plan is kept as long as its
// connection lives, so a plan that was made for a small table must not scan it after it has grown.
// Therefore rows are found only by an index or, in a join, by an index look-up for each of a few
// rows. A frozen process must not keep its locks, so the server ends a transaction that is idle for
// too long.
const session = `
  set enable_seqscan = off;
  set enable_hashjoin = off;
  set enable_mergejoin = off;
  set enable_material = off;
  set enable_bitmapscan = off;
  set jit = off;
  set timezone = 'UTC';
  set datestyle = 'ISO';
  set statement_timeout = ${statementTimeoutMs};
  set idle_in_transaction_session_timeout = ${statementTimeoutMs};
`;

const bigint = 20;

export function openDatabase(url: string, name: string, tls?: TlsSource): Database {
  const types = new pg.TypeOverrides();
  types.setTypeParser(bigint, Number); // versions and stream sequences stay far below 2^53
  const pool = new pg.Pool({
    ...serverOf(url, tls),
    application_name: name,
    max: poolSize,
    pipeline: true, // statements sent without awaiting travel together
    types,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: statementTimeoutMs + 2_000, // in case the server does not answer at all
    keepAlive: true,
    onConnect: (client) => void client.query(session).catch(() => {}),
  });
  // The statement that uses a lost connection fails; without a listener the process would end, too.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

// The URL decides whether the connection is encrypted. The mode is removed from it, because the
// client library would let it override the options beside it.
export function serverOf(url: string, tls?: TlsSource): pg.ClientConfig {
  const connectionString = url.replace(/\?.*$/, "");
  if (!isEncryptedDatabase(url)) return { connectionString, ssl: false };
  return { connectionString, ssl: tlsOptions(tls) };
}

// Each text of a statement has one name, under which it is prepared once per connection.
const names = new Map<string, string>();

export async function query<Row extends pg.QueryResultRow>(
  on: Database | Transaction,
  statement: Sql | string,
  given: unknown[] = [],
): Promise<Row[]> {
  const { text, values } = statement instanceof Sql
    ? { text: statement.text, values: [...statement.values] }
    : { text: statement, values: given };
  if (on instanceof pg.Client && commits.has(on)) throw new Error(`Sent after the commit: ${text}`);
  let name = names.get(text);
  if (!name) names.set(text, name = `kenri_${names.size + 1}`);
  writeTogether(on);
  return (await on.query<Row>({ name, text, values })).rows;
}

// Statements that are sent in the same turn of the event loop leave in one write. The driver writes
// each by itself, and a write costs as much as the work for two changes.
function writeTogether(on: Database | Transaction): void {
  if (!(on instanceof pg.Client)) return;
  const { stream } = (on as unknown as { connection: { stream: Duplex } }).connection;
  if (stream.writableCorked > 0) return;
  stream.cork();
  queueMicrotask(() => stream.uncork());
}

// Formats a time as the APIs do: RFC 3339, in UTC, with microseconds.
export function utc(time: string): string;
export function utc(time: Sql): Sql;
export function utc(time: string | Sql): string | Sql {
  const [before, after] = ["to_char((", `) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`];
  return typeof time === "string" ? before + time + after : Sql.join([before, time, after]);
}

// The same for a time as PostgreSQL writes it in our sessions: 2026-01-02 03:04:05.6789+00.
export function utcOf(time: string): string {
  return `${time.slice(0, 10)}T${time.slice(11, 19)}.${time.slice(20, -3).padEnd(6, "0")}Z`;
}

export async function transaction<Result>(
  database: Database,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  const tx = await database.connect();
  let broken: Error | undefined;
  try {
    writeTogether(tx);
    const begun = tx.query("begin"); // not awaited here, so that it travels with the first statement
    const [result] = await Promise.all([work(tx), begun]);
    const { command } = await (commits.get(tx) ?? tx.query("commit"));
    if (command !== "COMMIT") throw new Error(`The transaction ended with ${command}`);
    return result;
  } catch (error) {
    await (commits.get(tx) ?? tx.query("rollback")).catch((lost: Error) => broken = lost);
    throw error;
  } finally {
    commits.delete(tx);
    tx.release(broken);
  }
}

// The results of statements of one transaction that were sent together. The first one that fails, in
// the order in which they were sent, is the cause: it aborts the transaction, so all after it fail.
export async function together<Statements extends readonly unknown[] | []>(
  statements: Statements,
): Promise<{ -readonly [At in keyof Statements]: Awaited<Statements[At]> }> {
  await Promise.allSettled(statements);
  return await Promise.all(statements);
}

// The commits that were sent before the last statements were answered.
const commits = new WeakMap<Transaction, Promise<pg.QueryResult>>();

// The same for the last statements of a transaction. Its commit is sent behind them, so it takes no
// round trip of its own; if one of them fails, it becomes a rollback. So they must fail by themselves
// if they can't do all that they should. Nothing may be sent after them.
export async function lastTogether<Statements extends readonly Promise<unknown>[] | []>(
  tx: Transaction,
  statements: Statements,
): Promise<{ -readonly [At in keyof Statements]: Awaited<Statements[At]> }> {
  let areSent = true;
  for (const statement of statements) statement.catch(() => areSent = false);
  await new Promise<void>((turn) => setImmediate(turn)); // one that can't be sent has failed by then
  if (areSent) {
    const commit = tx.query("commit");
    commit.catch(() => {}); // `transaction` awaits it, unless a statement has failed
    commits.set(tx, commit);
  }
  return await together(statements);
}

const unavailableStates = /^(08|53|57P|25006|25P03|55P03|57014)/; // 25006: it became a standby
const unavailableMessages =
  /timeout|timed out|terminated|ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|not queryable|closed|refused|reset|certificate|SSL/i;

// Whether the database caused the error and not the statement: it is down, starting, full or too
// slow.
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  if (error instanceof pg.DatabaseError) return unavailableStates.test(String(code));
  return unavailableMessages.test(`${code ?? ""} ${error.message}`);
}

// The server answers but refuses this URL: the role, password or database is wrong.
export function isNotAdmitted(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(28|3D000)/.test(String(error.code));
}

// Whether the migrations that the service needs were applied. Newer ones may have been applied,
// too.
export async function schemaIsCurrent(database: Database, version: number): Promise<boolean> {
  const [row] = await query<{ current: boolean }>(
    database,
    `select coalesce(max(version) >= $1, false) as current from schema_migrations`,
    [version],
  );
  return row?.current ?? false;
}
