// Runs a real function of a service on a database that contains exactly the rows of one state, and reads
// the result. Results are remembered, because they depend on nothing but these rows.
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type pg from "pg";
import { type Database, openDatabase } from "../../../shared/postgres/postgres.ts";
import { type TestDatabase, withClient } from "../../support/databases.ts";
import { type Event, type LeasedTables, numberOf } from "./state.ts";

/** A variant that is broken on purpose replaces a statement with this. */
export type Rewrite = (text: string, killed: boolean) => string;

export interface TableAccess<Tables> {
  freshDatabase(): Promise<TestDatabase>;
  names: string[]; // of the tables
  load(tables: Tables): string; // statements that fill the empty tables
  lock(event: Event): string; // a statement that locks the event's row
  read(owner: Database): Promise<{ tables: Tables; tokens: (string | null)[] }>;
  tokenOf(event: Event): string; // that a leased row is loaded with
}

export interface Changed<Tables, Returned> {
  tables: Tables;
  endedLeases: Event[]; // events whose rows have another token now, or none
  returned: Returned;
}

export interface Circumstances {
  locked?: Event | undefined; // another session has locked this row
  killedBefore?: RegExp | undefined; // the process ends before it sends this statement
  meanwhile?: { before: RegExp; call(database: Database): Promise<unknown> } | undefined;
}

/** The parts of the tables that a call reads. The rest are stand-ins, which must not affect it. */
export interface View<Tables> {
  of(tables: Tables): Tables;
  unread: RegExp; // no statement of the call contains these words
}

const lockNotAvailable = "55P03";

export class RealCalls<Tables extends LeasedTables> implements AsyncDisposable {
  count = 0;
  readonly #access: TableAccess<Tables>;
  readonly #rewrite: Rewrite;
  readonly #known = new Map<string, Changed<Tables, unknown>>();
  #opened: Promise<Opened> | undefined; // with the first call

  constructor(access: TableAccess<Tables>, rewrite: Rewrite = (text) => text) {
    this.#access = access;
    this.#rewrite = rewrite;
  }

  async after<Returned>(
    before: Tables,
    what: string, // names the call with its arguments
    call: (database: Database) => Promise<Returned>,
    { view, ...circumstances }: Circumstances & { view?: View<Tables> | undefined } = {},
  ): Promise<Changed<Tables, Returned>> {
    const { locked, killedBefore } = circumstances;
    const name = `${what} ${locked} ${killedBefore}`;
    return await this.#once(`${numberOf(before)} ${name}`, async () => {
      if (!view) return await this.#call(before, call, circumstances);
      const seen = view.of(before);
      const changed = await this.#once(
        `${numberOf(seen)} ${name} in view`,
        () => this.#call(seen, call, { ...circumstances, unread: view.unread }),
      );
      return { ...changed, tables: restored(before, seen, changed.tables) };
    }) as Changed<Tables, Returned>;
  }

  async #once(
    key: string,
    call: () => Promise<Changed<Tables, unknown>>,
  ): Promise<Changed<Tables, unknown>> {
    const known = this.#known.get(key);
    if (known) return known;
    const changed = await call();
    this.#known.set(key, changed);
    return changed;
  }

  async #call<Returned>(
    before: Tables,
    call: (database: Database) => Promise<Returned>,
    circumstances: Circumstances & { unread?: RegExp },
  ): Promise<Changed<Tables, Returned>> {
    const { owner, service } = await (this.#opened ??= open(this.#access));
    const { names, load, lock, read, tokenOf } = this.#access;
    // Otherwise each call would read the dead rows of all calls before it.
    if (this.count++ % 50 === 0) await owner.query(`vacuum ${names}`);
    const empty = names.map((name) => `delete from ${name}`);
    await owner.query([...empty, load(before)].join(";\n"));
    const { locked } = circumstances;
    const unlock = locked === undefined ? undefined : await holdLock(owner, lock(locked));
    const returned = await call(this.#serviceIn(service, circumstances));
    await unlock?.();
    const { tables, tokens } = await read(owner);
    const endedLeases = before.rows.flatMap((row, event) =>
      row && row.lease !== "none" && tokens[event] !== tokenOf(event) ? [event] : []
    );
    return { tables, endedLeases, returned };
  }

  // The service's pool, which sends one statement after the other. A process that is killed sends
  // nothing more, and PostgreSQL rolls back what it had not committed.
  #serviceIn(
    service: Database,
    circumstances: Circumstances & { unread?: RegExp },
  ): Database {
    const { killedBefore, unread, meanwhile } = circumstances;
    let last: Promise<unknown> = Promise.resolve();
    let isKilled = false;
    const send = async (on: Database | pg.PoolClient, config: pg.QueryConfig | string) => {
      const original = typeof config === "string" ? config : config.text;
      const text = this.#rewrite(original, killedBefore !== undefined);
      isKilled ||= killedBefore?.test(text) === true;
      if (isKilled && original !== "rollback") throw new Interrupted();
      if (unread?.test(original)) throw new Error(`It reads more: ${original}`);
      if (meanwhile?.before.test(original)) await this.#unlessLocked(service, meanwhile.call);
      const isSame = text === original; // else the statement that is prepared is another one
      if (isSame) return await on.query(config as pg.QueryConfig);
      return await on.query(text, typeof config === "string" ? [] : config.values ?? []);
    };
    const inTurn = (on: Database | pg.PoolClient) => (config: pg.QueryConfig | string) =>
      last = last.catch(() => {}).then(() => send(on, config));
    const connect = async () => {
      const client = await service.connect();
      const query = inTurn(client);
      // A killed process loses its connection, so PostgreSQL rolls its transaction back.
      const rollback = () => query("rollback").catch(() => {});
      const release = () =>
        isKilled ? void rollback().then(() => client.release()) : client.release();
      return { query, release };
    };
    return { ...service, query: inTurn(service), connect } as unknown as Database;
  }

  // Another process does something at the same time, if no lock keeps it waiting.
  async #unlessLocked(
    service: Database,
    call: (database: Database) => Promise<unknown>,
  ): Promise<void> {
    const client = await service.connect();
    try {
      await client.query("set lock_timeout = 1");
      const connect = () => Promise.resolve({ query: client.query.bind(client), release() {} });
      await call(this.#serviceIn({ connect } as unknown as Database, {}));
    } catch (error) {
      const { code } = error as { code?: string };
      if (code !== lockNotAvailable) throw error;
    } finally {
      await client.query("reset lock_timeout");
      client.release();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#opened)?.close();
  }
}

interface Opened {
  owner: Database;
  service: Database;
  close(): Promise<void>;
}

async function open(
  { freshDatabase }: Pick<TableAccess<unknown>, "freshDatabase">,
): Promise<Opened> {
  const { ownerUrl, serviceUrl, drop } = await freshDatabase();
  const name = new URL(ownerUrl).pathname.slice(1);
  await withClient(
    ownerUrl,
    (client) => client.query(`alter database ${name} set synchronous_commit = off`),
  );
  const pools = {
    owner: openDatabase(ownerUrl, "model"),
    service: openDatabase(serviceUrl, "model"),
  };
  const close = async () => {
    await Promise.all([pools.owner.end(), pools.service.end()]);
    await drop();
  };
  return { ...pools, close };
}

// Another session holds the locks until the returned function is called.
async function holdLock(owner: Database, statement: string): Promise<() => Promise<void>> {
  const other = await owner.connect();
  await other.query(`begin; ${statement}`);
  return async () => {
    await other.query("rollback");
    other.release();
  };
}

// A stand-in must be unchanged; then the row that it replaced takes its place again.
function restored<Tables extends object>(before: Tables, seen: Tables, after: Tables): Tables {
  const parts = Object.entries(before).map(([name, part]) => {
    const [was, is] = [seen, after].map((tables) => tables[name as keyof Tables] as unknown[]);
    return [name, withoutStandIns(part, was ?? [], is ?? [])];
  });
  return Object.fromEntries(parts);
}

function withoutStandIns(before: unknown[], seen: unknown[], after: unknown[]): unknown[] {
  if (before.length !== seen.length) {
    assert.deepEqual(after, seen);
    return before;
  }
  return after.map((item, at) => {
    if (isDeepStrictEqual(before[at], seen[at])) return item;
    assert.deepEqual(item, seen[at]);
    return before[at];
  });
}

// The model has interrupted the call.
export class Interrupted extends Error {
  override readonly name = "Interrupted";
}

/** Undefined when it was interrupted. */
export async function unlessInterrupted<Returned>(
  call: Promise<Returned>,
): Promise<Returned | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof Interrupted) return undefined;
    throw error;
  }
}
