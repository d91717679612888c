// Blocks the service in the middle of a transaction, by a lock that another session holds.
import { withClient } from "./databases.ts";
import { until } from "../../tools/servers/wait.ts";

/** Runs the work while the table is locked, until the work calls `release`. */
export function whileTableIsLocked<Result>(
  ownerUrl: string,
  table: string,
  work: (release: () => Promise<void>) => Promise<Result>,
): Promise<Result> {
  return withClient(ownerUrl, async (owner) => {
    await owner.query("begin");
    await owner.query(`lock table ${table} in access exclusive mode`);
    return await work(async () => void await owner.query("commit"));
  });
}

/** Returns how many sessions wait for a lock now. */
export function waitingForLocks(ownerUrl: string): Promise<number> {
  return withClient(ownerUrl, async (owner) => {
    const { rowCount } = await owner.query(
      `select from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rowCount ?? 0;
  });
}

/** Rows by their keys, in ascending order. */
export interface Rows {
  table: string;
  key: string;
  keys: string[];
}

/** Returns the rows that the work has locked when it starts to wait for this one. */
export function lockedBefore(
  ownerUrl: string,
  { table, key, keys }: Rows,
  held: string,
  work: () => Promise<unknown>,
): Promise<string[]> {
  const lock = `select ${key}::text as key from ${table} where ${key} = any($1)`;
  return withClient(ownerUrl, async (owner) => {
    await owner.query("begin");
    await owner.query(`${lock} for update`, [[held]]);
    const working = work();
    await until("it waits", async () => await waitingForLocks(ownerUrl) === 1);
    const free = await withClient(ownerUrl, async (other) => {
      const { rows } = await other.query(`${lock} for update skip locked`, [keys]);
      return rows.map(({ key }) => key);
    });
    await owner.query("rollback");
    await working;
    return keys.filter((one) => one !== held && !free.includes(one));
  });
}

/** Returns the rows that the work has inserted when it starts to wait for this one. */
export function insertedBefore(
  ownerUrl: string,
  rows: Rows & { insert: string }, // a statement whose $1 is the key
  held: string,
  work: () => Promise<unknown>,
): Promise<string[]> {
  return withClient(ownerUrl, async (owner) => {
    await owner.query("begin");
    await owner.query(rows.insert, [held]);
    const working = work();
    await until("it waits", async () => await waitingForLocks(ownerUrl) === 1);
    const inserted: string[] = [];
    for (const key of rows.keys) {
      if (key !== held && await isInsertedMeanwhile(ownerUrl, rows.insert, key)) inserted.push(key);
    }
    await owner.query("rollback");
    await working;
    return inserted;
  });
}

const lockNotAvailable = "55P03";

function isInsertedMeanwhile(ownerUrl: string, insert: string, key: string): Promise<boolean> {
  return withClient(ownerUrl, async (other) => {
    await other.query("begin");
    await other.query("set local lock_timeout = '50ms'");
    try {
      await other.query(insert, [key]);
      return false;
    } catch (error) {
      if ((error as { code?: string }).code === lockNotAvailable) return true;
      throw error;
    } finally {
      await other.query("rollback");
    }
  });
}

/** The advisory locks that the waiting session holds, in ascending order. */
export function advisoryLocksHeld(ownerUrl: string): Promise<bigint[]> {
  return withClient(ownerUrl, async (owner) => {
    const { rows } = await owner.query(
      `select ((classid::bigint << 32) | objid::bigint)::text as number
       from pg_locks
       join pg_stat_activity activity using (pid)
       where locktype = 'advisory' and granted
         and datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.map(({ number }) => BigInt(number)).sort((a, b) => (a < b ? -1 : 1));
  });
}
