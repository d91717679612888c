import { type Database, query } from "../postgres/postgres.ts";
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
  const found = rows.find(({ scan }) => scan)?.scan;
  const leased = rows.filter(({ id }) => id !== null);
  return {
    ...(found ?? { seen: 0, reached: null, more: false }),
    rows: leased.map((row) => leasedRow<Content>(row, token)),
  };
}
