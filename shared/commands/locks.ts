import { query, type Transaction } from "../postgres/postgres.ts";
import { sql } from "../postgres/sql.ts";
import { sha256 } from "../process/sha256.ts";

// Advisory locks by name, because what they protect may not exist yet. They are held until the
// transaction ends. Every transaction of a service takes all of its locks here, in one statement and
// in the order of their numbers, so transactions can't deadlock, whatever commands they run.
export async function lockNames(tx: Transaction, names: string[]): Promise<void> {
  const numbers = names.map(lockNumber);
  numbers.sort((a, b) => a < b ? -1 : a > b ? 1 : 0);
  const inOrder = `{${numbers.join()}}`;
  await query(
    tx,
    sql`
    select count(pg_advisory_xact_lock(number))
    from unnest(${inOrder}::bigint[]) as number`,
  );
}

export function lockNumber(name: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${sha256(name).slice(0, 16)}`));
}
