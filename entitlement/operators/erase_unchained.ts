import { type Position, writeCursor } from "@kenri/shared/http/cursor.ts";
import type { Erased, Erasure } from "@kenri/shared/operators/erasure.ts";
import { type Database, query, transaction, utc } from "@kenri/shared/postgres/postgres.ts";
import { pageOfAudit } from "../audit/pages.ts";
import { findBounds } from "../audit/bounds.ts";
import { type AuditedRow, eraseRows } from "./erase_rows.ts";

// Erases a user from the audit rows written before there were chains. Only their time leads to
// them, so each call searches one page of the audit.

const searchedAtOnce = 20_000;

export async function eraseUnchained(
  database: Database,
  erasure: Erasure,
  after: Position,
): Promise<Erased> {
  const { all_hashed_since } = await findBounds(database);
  const [last, found] = await Promise.all([
    findEndOfPage(database, after, all_hashed_since),
    findUnchained(database, erasure.userId, after, all_hashed_since),
  ]);
  const rows = await transaction(database, (tx) => eraseRows(tx, erasure, found));
  const next_cursor = last && writeCursor([last.occurred_at, last.audit_id]);
  return { waiting: 0, rows, next_cursor };
}

// Returns undefined on the last page.
async function findEndOfPage(
  database: Database,
  after: Position,
  until: string,
): Promise<AuditedRow | undefined> {
  const [last] = await query<AuditedRow & Record<string, unknown>>(
    database,
    `select audit_id, ${utc("occurred_at")} as occurred_at
     from (${pageOfAudit}) as page
     offset $4 - 1`,
    [...after, until, searchedAtOnce],
  );
  return last;
}

function findUnchained(
  database: Database,
  userId: string,
  after: Position,
  until: string,
): Promise<AuditedRow[]> {
  return query<AuditedRow & Record<string, unknown>>(
    database,
    `select audit_id, ${utc("occurred_at")} as occurred_at
     from (${pageOfAudit}) as page
     where user_id = $5
       and hash is null`,
    [...after, until, searchedAtOnce, userId],
  );
}
