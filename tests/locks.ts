// Holding the service up in the middle of its transactions, by a lock that another session has.
import { withClient } from "./databases.ts";

/** Runs the work while nobody else can use the table; the work says when they can again. */
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

/** How many sessions wait for a lock at this moment. */
export function waitingForLocks(ownerUrl: string): Promise<number> {
  return withClient(ownerUrl, async (owner) => {
    const { rowCount } = await owner.query(
      `select from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rowCount ?? 0;
  });
}
