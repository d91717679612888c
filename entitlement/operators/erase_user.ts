import type { Handler } from "hono";
import { lockNames } from "@kenri/shared/commands/locks.ts";
import {
  firstPosition,
  positionSchema,
  readCursor,
  writeCursor,
} from "@kenri/shared/http/cursor.ts";
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
import { allHeads, type HeadKind } from "../audit/heads.ts";
import { entitlementLock } from "../change_locks.ts";
import { balanceLock } from "../points/change_points.ts";
import type { AskReceiver } from "../reconciliation/ask.ts";
import { type AuditedRow, eraseEntitlements, erasePoints, eraseRows } from "./erase_rows.ts";
import { eraseUnchained } from "./erase_unchained.ts";
import {
  chainedOfUser,
  countUnpublished,
  countUnreceived,
  countUnreceivedSince,
  findPublishable,
  lockFinished,
  lockReservations,
} from "./events_on_the_way.ts";

// Erases a user. The first call erases entitlements, balances and all that their audit chains lead
// to, and cancels reservations, in one transaction. Each later call erases a page of the audit rows from before there were chains.

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

// The user got something while the erasure was under way. It is rolled back, and has to be repeated.
class GotMore extends Error {}

async function eraseChained(parts: EraseParts, erasure: Erasure): Promise<Erased> {
  try {
    return await eraseOnce(parts, erasure);
  } catch (error) {
    if (error instanceof GotMore) return { waiting: 1, rows: {} };
    throw error;
  }
}

async function eraseOnce({ database, ask }: EraseParts, erasure: Erasure): Promise<Erased> {
  const before = await findPublishable(database, erasure.userId);
  const unreceived = await countUnreceived(ask, before);
  if (unreceived > 0) return { waiting: unreceived, rows: {} };
  const known = new Set(before.map(({ audit_id }) => audit_id));
  return await transaction(database, async (tx) => {
    // A change of one of them waits for these locks, and then finds nothing of this user.
    const heads = await findHeads(tx, erasure.userId);
    // Of two erasures under one pseudonym, the second then finds the first.
    const pseudonym = `pseudonym ${erasure.pseudonym}`;
    await lockNames(tx, [pseudonym, ...heads.map((head) => lockOf(erasure.userId, head))]);
    const carriedOut = await lockReservations(tx, erasure.userId);
    if (carriedOut > 0) return { waiting: carriedOut, rows: {} };
    await lockFinished(tx, erasure.userId);
    const unpublished = await countUnpublished(tx, erasure.userId);
    if (unpublished > 0) return { waiting: unpublished, rows: {} };
    const waiting = await countUnreceivedSince(tx, ask, erasure.userId, known);
    if (waiting > 0) return { waiting, rows: {} };
    const rows = await eraseFound(tx, erasure, heads);
    return { waiting, rows, next_cursor: writeCursor(firstPosition) };
  });
}

async function eraseFound(
  tx: Transaction,
  erasure: Erasure,
  heads: UserHead[],
): Promise<ErasedRows> {
  const { userId, dryRun } = erasure;
  const [found, reservations] = await Promise.all([
    findChained(tx, userId),
    countReservations(tx, userId),
  ]);
  const count = (wanted: HeadKind) => heads.filter(({ kind }) => kind === wanted).length;
  const [entitlements, balances] = [count("RIGHT"), count("POINTS")];
  if (heads.length + reservations > 0) await refuseUsedPseudonym(tx, erasure);
  const rows = {
    ...balances + reservations === 0
      ? {}
      : { point_root: balances, point_reservations: reservations },
    ...await eraseRows(tx, erasure, found),
    entitlements,
  };
  if (dryRun) return rows;
  const erased = entitlements > 0 ? await eraseEntitlements(tx, erasure) : 0;
  const points = balances + reservations > 0 ? await erasePoints(tx, erasure) : {};
  // What the user got since the locks were taken is not locked.
  const isLocked = erased === entitlements && (points["point_root"] ?? 0) === balances;
  if (!isLocked || (await findHeads(tx, userId)).length > 0) {
    throw new GotMore();
  }
  return { ...rows, ...points };
}

// A pseudonym stands for one person. A second person under it could not be distinguished from the first.
async function refuseUsedPseudonym(tx: Transaction, { pseudonym }: Erasure): Promise<void> {
  const [heads, reservations] = await Promise.all([
    findHeads(tx, pseudonym),
    countReservations(tx, pseudonym),
  ]);
  if (heads.length + reservations === 0) return;
  throw new ApiError("BAD_REQUEST", "operation_id belongs to a finished erasure; leave it out");
}

interface UserHead {
  kind: HeadKind;
  item: string;
}

function findHeads(tx: Transaction, userId: string): Promise<UserHead[]> {
  return query<UserHead & Record<string, unknown>>(
    tx,
    `select kind, item
     from (${allHeads}) as head
     where user_id = $1`,
    [userId],
  );
}

function lockOf(userId: string, { kind, item }: UserHead): string {
  return kind === "POINTS"
    ? balanceLock({ userId, unit: item })
    : entitlementLock({ userId, stockKeepingUnit: item });
}

async function countReservations(tx: Transaction, userId: string): Promise<number> {
  const rows = await query(tx, "select from point_reservations where user_id = $1", [userId]);
  return rows.length;
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
