import { type Database, query, type Transaction } from "../postgres/postgres.ts";
import type { Log } from "./log.ts";
import type { Loop } from "./loop.ts";
import { pause } from "./signals.ts";

// Small enough that no lock is held for long, large enough that millions of rows go in minutes.
export const deleteBatchSize = 1_000;

export interface OldRows {
  table: string;
  id: string;
  condition: string; // of the rows that are old, with an order where it helps to find them
  attempts?: string; // the table with their attempts, which are deleted with them
}

// Deletes in batches until one finds less than a full batch. Locked rows are skipped, so that
// several replicas share the work and a row in use does not hold up the others. Returns the number
// of rows.
export async function deleteOldRows(
  database: Database | Transaction,
  rows: OldRows,
  values: unknown[],
  signal: AbortSignal,
): Promise<number> {
  let total = 0;
  while (!signal.aborted) {
    const deleted = await deleteBatch(database, rows, values);
    total += deleted;
    if (deleted < deleteBatchSize) break;
  }
  return total;
}

async function deleteBatch(
  database: Database | Transaction,
  { table, id, condition, attempts }: OldRows,
  values: unknown[],
): Promise<number> {
  const alsoAttempts = attempts === undefined ? "" : `, attempts as (
       delete from ${attempts} attempt
       using old
       where attempt.${id} = old.${id}
     )`;
  const deleted = await query(
    database,
    `with old as (
       select ${id}
       from ${table}
       where ${condition}
       limit $1
       for update skip locked
     )${alsoAttempts}
     delete from ${table} row
     using old
     where row.${id} = old.${id}
     returning 1`,
    [deleteBatchSize, ...values],
  );
  return deleted.length;
}

export interface RetentionSchedule {
  enabled: boolean;
  intervalMs: number;
}

// Cleans up at start and then once per interval; after a failure it tries again within a minute.
// None when it is switched off.
export function retentionLoops(
  { enabled, intervalMs }: RetentionSchedule,
  clean: (signal: AbortSignal) => Promise<void>,
  log: Log,
): Loop[] {
  if (!enabled) return [];
  const run = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      let nextMs = intervalMs;
      try {
        await clean(signal);
      } catch (error) {
        nextMs = Math.min(intervalMs, 60_000);
        log.error("Retention failed: {error}", { error });
      }
      await pause(nextMs, signal);
    }
  };
  return [{ name: "retention", run }];
}
