import type { Handler } from "hono";
import { readCursor, writeCursor } from "@kenri/shared/http/cursor.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import {
  type Erased,
  type ErasedRows,
  eraseUserWith,
  type Erasure,
} from "@kenri/shared/operators/erasure.ts";
import {
  type Database,
  query,
  type Transaction,
  transaction,
  utc,
} from "@kenri/shared/postgres/postgres.ts";
import { beginning, positionSchema } from "../audit/pages.ts";
import { lockEntitlements } from "../change_locks.ts";
import type { AskReceiver } from "../reconciliation/ask.ts";
import { type AuditedRow, eraseEntitlements, eraseRows } from "./erase_rows.ts";
import { eraseUnchained } from "./erase_unchained.ts";
import {
  chainedOfUser,
  countUnpublished,
  countUnreceived,
  countUnreceivedSince,
  findPublishable,
  lockFinished,
} from "./events_on_the_way.ts";

// Erases a user. The first call erases the entitlements and all that their audit chains lead to, in
// one transaction. Each later call erases a page of the audit rows from before there were chains.

export interface EraseParts {
  database: Database;
  ask: AskReceiver;
}

export function eraseUser(parts: EraseParts): Handler {
  return eraseUserWith((erasure) => {
    const after = readCursor(erasure.cursor, positionSchema);
    return after ? eraseUnchained(parts.database, erasure, after) : eraseChained(parts, erasure);
  });
}

async function eraseChained({ database, ask }: EraseParts, erasure: Erasure): Promise<Erased> {
  const before = await findPublishable(database, erasure.userId);
  const unreceived = await countUnreceived(ask, before);
  if (unreceived > 0) return { waiting: unreceived, rows: {} };
  const known = new Set(before.map(({ audit_id }) => audit_id));
  return await transaction(database, async (tx) => {
    // A change of one of them waits for these locks, and then finds nothing of this user.
    await lockEntitlements(tx, await findEntitlements(tx, erasure.userId));
    await lockFinished(tx, erasure.userId);
    const unpublished = await countUnpublished(tx, erasure.userId);
    if (unpublished > 0) return { waiting: unpublished, rows: {} };
    const waiting = await countUnreceivedSince(tx, ask, erasure.userId, known);
    if (waiting > 0) return { waiting, rows: {} };
    return { waiting, rows: await eraseFound(tx, erasure), next_cursor: writeCursor(beginning) };
  });
}

async function eraseFound(tx: Transaction, erasure: Erasure): Promise<ErasedRows> {
  const [found, entitlements] = await Promise.all([
    findChained(tx, erasure.userId),
    findEntitlements(tx, erasure.userId),
  ]);
  if (entitlements.length > 0) await refuseUsedPseudonym(tx, erasure);
  const rows = await eraseRows(tx, erasure, found);
  if (!erasure.dryRun && entitlements.length > 0) await eraseEntitlements(tx, erasure);
  return { ...rows, entitlements: entitlements.length };
}

// A pseudonym stands for one person. A second person under it could not be distinguished from the first.
async function refuseUsedPseudonym(tx: Transaction, { pseudonym }: Erasure): Promise<void> {
  const erased = await findEntitlements(tx, pseudonym);
  if (erased.length === 0) return;
  throw new ApiError("BAD_REQUEST", "operation_id belongs to a finished erasure; leave it out");
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

function findChained(tx: Transaction, userId: string): Promise<AuditedRow[]> {
  return query<AuditedRow & Record<string, unknown>>(
    tx,
    `${chainedOfUser}
     select audit_id, ${utc("occurred_at")} as occurred_at
     from chain`,
    [userId],
  );
}
