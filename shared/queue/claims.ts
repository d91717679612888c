import { type Database, query } from "../postgres/postgres.ts";
import { name, sql } from "../postgres/sql.ts";
import { claimStatement, type Scan } from "./claim_statement.ts";
import type { Claim } from "./job.ts";
import { type Lease, type LeasedRow, leasedRow, type ReturnedRow } from "./leased_row.ts";
import type { TableDescription } from "./leased_table.ts";

// The claim: how the rows of a table are leased to a worker. The whole statements are in
// statements.sql.

export interface Leased<Content> extends Claim<LeasedRow<Content>> {
  seen: number; // due rows that the claim looked at
  reached: string | null; // the turn of the last of them, as PostgreSQL writes it
}

type Found = Omit<Leased<unknown>, "rows">;

// One row has what the claim found; it is the only one, without an id, if the claim leased nothing.
type ClaimedRow<Content> = ReturnedRow & Content & { id: string | null; scan: Found | null };

export async function leaseRows<Content extends object>(
  database: Database,
  table: TableDescription<Content>,
  lease: Lease,
  scan: Scan,
): Promise<Leased<Content>> {
  const token = crypto.randomUUID();
  const statement = claimStatement(table, { ...lease, token }, scan);
  const rows = await query<ClaimedRow<Content>>(database, statement);
  const { seen = 0, reached = null, more = false } = rows.find(({ scan }) => scan)?.scan ?? {};
  const leased = rows.filter(({ id }) => id !== null);
  return { rows: leased.map((row) => leasedRow<Content>(row, token)), seen, reached, more };
}

// How long it is until the earliest row of the future is due, by the clock of the database.
export async function nextDueMs<Content>(
  database: Database,
  table: TableDescription<Content>,
): Promise<number | undefined> {
  const { turn } = table.order;
  const [next] = await query<{ ms: number }>(
    database,
    sql`select extract(epoch from ${turn} - clock_timestamp())::float8 * 1000 as ms
from ${name(table.name)}
where unfinished
  and ${turn} > now()
order by ${turn}
limit 1`,
  );
  return next?.ms;
}
