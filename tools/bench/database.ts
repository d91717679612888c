// Statements to the databases of the bench, as their owner.
import type pg from "pg";
import type { DatabaseUrls } from "../load/stage.ts";
import { countRows, withClient } from "../servers/asking.ts";
import type { PostgresServer } from "../servers/postgres.ts";

// Each has 16 MiB. This is more than is written between two checkpoints.
const walFiles = 64;

/** PostgreSQL reuses the files of its write-ahead log, but a new server has none yet, and a commit
 * waits some 40 ms for each new one. So they are made before anything is measured. */
export async function makeWalFiles(server: PostgresServer): Promise<void> {
  await withClient(server.url, async (owner) => {
    for (let i = 0; i < walFiles; i++) {
      await owner.query("select pg_logical_emit_message(false, 'bench', 'one more file')");
      await owner.query("select pg_switch_wal()");
    }
    await owner.query("checkpoint"); // now the files may be reused
  });
}

export async function countOf(owner: pg.Client, from: string): Promise<number> {
  const { rows: [row] } = await owner.query<{ count: number }>(
    `select count(*)::int as count from ${from}`,
  );
  return row?.count ?? 0;
}

export async function hasRow(owner: pg.Client, from: string): Promise<boolean> {
  const { rows: [row] } = await owner.query<{ found: boolean }>(
    `select exists (select from ${from}) as found`,
  );
  return row?.found ?? false;
}

/** Fails unless the `from` clause has this many rows. */
export async function expectRows(
  { ownerUrl }: DatabaseUrls,
  expected: number,
  from: string,
): Promise<void> {
  const count = await countRows(ownerUrl, from);
  if (count !== expected) throw new Error(`${count} instead of ${expected} rows: ${from}`);
}

/** For a select from rows with a `number`: ids that grow with it, as the ids of the services do. */
export function uuidOfRow(at: string): string {
  const hash = `md5(number || '${at.replaceAll("'", "''")}')`;
  return `(lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint + number / 10), 12, '0')
    || '7' || substr(${hash}, 1, 3) || '8' || substr(${hash}, 4, 15))::uuid`;
}
