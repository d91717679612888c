import type { Handler } from "hono";
import { readCursor, writeCursor } from "@kenri/shared/cursor";
import {
  type Erased,
  erasedAnswer,
  type Erasure,
  pseudonymOf,
  readErasure,
} from "@kenri/shared/erasure";
import { inLine } from "@kenri/shared/leases";
import { type Database, query, type Transaction, transaction, utc } from "@kenri/shared/postgres";
import { maxPerCheck } from "@kenri/shared/receipts";
import type { z } from "@hono/zod-openapi";
import { beginning, pageOfAudit, positionSchema } from "./audit_pages.ts";
import { lockEntitlements } from "./commit_changes.ts";
import { type AuditedRow, eraseRows } from "./erase_rows.ts";
import type { AskReceiver } from "./receiver.ts";
import { findBounds } from "./verify_audit.ts";

// Erases a user: first what the entitlements and their chains lead to, in one transaction; then, a
// page for each call, the audit rows from before there were chains, which only their time leads to.

export interface EraseParts {
  database: Database;
  ask: AskReceiver;
}

export function eraseUser(parts: EraseParts): Handler {
  return async (context) => {
    const erasure = await readErasure(context);
    const after = readCursor(erasure.cursor, positionSchema);
    const done = after
      ? await eraseUnchained(parts.database, erasure, after)
      : await eraseChained(parts, erasure);
    return erasedAnswer(erasure, done);
  };
}

async function eraseChained({ database, ask }: EraseParts, erasure: Erasure): Promise<Erased> {
  const unreceived = await countUnreceived(ask, await findChained(database, erasure.userId));
  if (unreceived > 0) return { waiting: unreceived, rows: {} };
  return await transaction(database, async (tx) => {
    // Who changes one of them now waits, and then finds nothing of this user.
    await lockEntitlements(tx, await findEntitlements(tx, erasure.userId));
    const waiting = await countUnpublished(tx, erasure.userId);
    if (waiting > 0) return { waiting, rows: {} };
    const found = await findChained(tx, erasure.userId);
    const rows = await eraseRows(tx, erasure, found);
    rows["entitlements"] = erasure.dryRun
      ? (await findEntitlements(tx, erasure.userId)).length
      : await eraseEntitlements(tx, erasure);
    return { waiting, rows, next_cursor: writeCursor(beginning) };
  });
}

function findEntitlements(
  tx: Transaction,
  userId: string,
): Promise<{ userId: string; stockKeepingUnit: string }[]> {
  return query(
    tx,
    `select user_id as "userId", stock_keeping_unit as "stockKeepingUnit"
     from entitlements
     where user_id = $1`,
    [userId],
  );
}

function findChained(on: Database | Transaction, userId: string): Promise<AuditedRow[]> {
  return query<AuditedRow & Record<string, unknown>>(
    on,
    `with recursive chain as (
       select entry.audit_id, entry.occurred_at, entry.previous_at, entry.stock_keeping_unit
       from entitlements head
       join entitlement_audit entry
         on entry.occurred_at = head.hashed_at
         and entry.user_id = head.user_id
         and entry.stock_keeping_unit = head.stock_keeping_unit
       where head.user_id = $1
       union
       select entry.audit_id, entry.occurred_at, entry.previous_at, entry.stock_keeping_unit
       from chain
       join entitlement_audit entry
         on entry.occurred_at = chain.previous_at
         and entry.user_id = $1
         and entry.stock_keeping_unit = chain.stock_keeping_unit
     )
     select audit_id, ${utc("occurred_at")} as occurred_at,
       occurred_at > now() - interval '7 days' and not exists (
         select from outbox_events row
         where row.event_id = chain.audit_id
           and row.status = 'FAILED'
       ) as is_in_stream
     from chain`,
    [userId],
  );
}

// An event that the stream has yet to give out would bring the user back.
async function countUnreceived(ask: AskReceiver, rows: AuditedRow[]): Promise<number> {
  const ids = rows.filter((row) => row.is_in_stream).map(({ audit_id }) => audit_id);
  let unreceived = 0;
  for (let i = 0; i < ids.length; i += maxPerCheck) {
    unreceived += (await ask(ids.slice(i, i + maxPerCheck))).missing.length;
  }
  return unreceived;
}

async function countUnpublished(tx: Transaction, userId: string): Promise<number> {
  const rows = await query(
    tx,
    `select
     from entitlements head
     join outbox_events row
       on ${inLine("row")}
       and row.aggregate_key = aggregate_key_of(head.user_id, head.stock_keeping_unit)
     where head.user_id = $1`,
    [userId],
  );
  return rows.length;
}

async function eraseEntitlements(
  tx: Transaction,
  { userId, operationId }: Erasure,
): Promise<number> {
  const rows = await query(
    tx,
    `update entitlements
     set user_id = $2, source_id = 'erased'
     where user_id = $1
     returning 1`,
    [userId, pseudonymOf(operationId)],
  );
  return rows.length;
}

const searchedAtOnce = 20_000;

async function eraseUnchained(
  database: Database,
  erasure: Erasure,
  after: z.output<typeof positionSchema>,
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

// Nothing when it is the last page.
async function findEndOfPage(
  database: Database,
  after: readonly [string, string],
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
  after: readonly [string, string],
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
