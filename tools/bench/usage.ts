// What a process uses of its machine, as Linux reports it.
import type { DatabaseUrls } from "../load/stage.ts";
import { withClient } from "../servers/asking.ts";

const idleMs = 10_000;
const ticksPerSecond = 100;

/** Processor time and transactions of a service that has nothing to do. */
export async function idleUse(
  name: string,
  pid: number,
  database: DatabaseUrls,
): Promise<Record<string, number>> {
  await new Promise((calm) => setTimeout(calm, 2_000));
  const before = { seconds: processorSeconds(pid), transactions: await transactionsOf(database) };
  await new Promise((over) => setTimeout(over, idleMs));
  const seconds = processorSeconds(pid) - before.seconds;
  const ours = 2; // reading the counters is itself a transaction, which the next reading counts
  const transactions = await transactionsOf(database) - before.transactions - ours;
  return {
    [`${name} idle % of a core`]: seconds / idleMs * 1_000 * 100,
    [`${name} idle queries/s`]: Math.max(0, transactions) / idleMs * 1_000,
  };
}

function processorSeconds(pid: number): number {
  const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

function transactionsOf(database: DatabaseUrls): Promise<number> {
  return withClient(database.ownerUrl, async (owner) => {
    const { rows: [row] } = await owner.query(
      `select (xact_commit + xact_rollback)::int as count from pg_stat_database
       where datname = current_database()`,
    );
    return row.count;
  });
}
