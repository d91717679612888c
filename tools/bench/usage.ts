// What processes use of their machine, as Linux reports it.
import { withClient } from "../servers/asking.ts";

const idleMs = 10_000;
const ticksPerSecond = 100;

/** What a service uses while it has nothing to do: processor time, and queries if it has a database. */
export async function idleUse(
  name: string,
  pid: number,
  databaseUrl?: string,
): Promise<Record<string, number>> {
  await new Promise((calm) => setTimeout(calm, 2_000));
  const transactions = () => databaseUrl === undefined ? 0 : transactionsOf(databaseUrl);
  const before = { seconds: processorSeconds(pid), transactions: await transactions() };
  await new Promise((over) => setTimeout(over, idleMs));
  const seconds = processorSeconds(pid) - before.seconds;
  const processor = { [`${name} idle % of a core`]: seconds / idleMs * 1_000 * 100 };
  if (databaseUrl === undefined) return processor;
  const ours = 2; // reading the counters is itself a transaction, which the next reading counts
  const made = Math.max(0, await transactions() - before.transactions - ours);
  return { ...processor, [`${name} idle queries/s`]: made / idleMs * 1_000 };
}

/** What the work returns, and the processor time per item, in µs, of these processes. */
export async function withUse<Result>(
  pids: Record<string, number>,
  items: number,
  work: () => Promise<Result>,
): Promise<{ result: Result; use: Record<string, number> }> {
  const names = Object.keys(pids);
  const before = Object.values(pids).map(processorSeconds);
  const result = await work();
  const spent = Object.values(pids).map((pid, i) => processorSeconds(pid) - (before[i] ?? NaN));
  const figures = spent.map((seconds, i) => [`${names[i]} µs`, seconds / items * 1_000_000]);
  return { result, use: Object.fromEntries(figures) };
}

interface Stat {
  parent: number;
  seconds: number;
  secondsOfEndedChildren: number;
}

// With its children: PostgreSQL has one for each connection, and more. Some end meanwhile.
function processorSeconds(pid: number): number {
  const { seconds, secondsOfEndedChildren } = statOf(pid);
  let sum = seconds + secondsOfEndedChildren;
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const child = statOf(Number(name));
      if (child.parent === pid) sum += child.seconds;
    } catch { /* It has ended: its parent counts it next time. */ }
  }
  return sum;
}

function statOf(pid: number): Stat {
  const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number);
  const seconds = (first: number) =>
    ((fields[first] ?? NaN) + (fields[first + 1] ?? NaN)) / ticksPerSecond;
  return { parent: fields[1] ?? NaN, seconds: seconds(11), secondsOfEndedChildren: seconds(13) };
}

function transactionsOf(databaseUrl: string): Promise<number> {
  return withClient(databaseUrl, async (owner) => {
    const { rows: [row] } = await owner.query(
      `select (xact_commit + xact_rollback)::int as count from pg_stat_database
       where datname = current_database()`,
    );
    return row.count;
  });
}
