import type { Handler } from "hono";
import { readCursor, writeCursor } from "@kenri/shared/http/cursor.ts";
import {
  type Erased,
  erasedAnswer,
  type ErasedRows,
  type Erasure,
  pseudonymOf,
  readErasure,
} from "@kenri/shared/operators/erasure.ts";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { isUnfinishedByKey } from "@kenri/shared/queue/leases.ts";
import {
  type Database,
  query,
  type Transaction,
  transaction,
  utc,
} from "@kenri/shared/postgres/postgres.ts";
import { maxPerCheck } from "@kenri/proto/notification/receipts.ts";
import type { z } from "@hono/zod-openapi";
import { beginning, pageOfAudit, positionSchema } from "../audit/pages.ts";
import { lockEntitlements } from "../change_locks.ts";
import { type AuditedRow, eraseRows, recordErasure } from "./erase_rows.ts";
import type { AskReceiver } from "../reconciliation/ask.ts";
import { findBounds } from "../audit/bounds.ts";

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
  const before = await findPublishable(database, erasure.userId);
  const unreceived = await countUnreceived(ask, before);
  if (unreceived > 0) return { waiting: unreceived, rows: {} };
  const known = new Set(before.map(({ audit_id }) => audit_id));
  return await transaction(database, async (tx) => {
    // Who changes one of them now waits, and then finds nothing of this user.
    await lockEntitlements(tx, await findEntitlements(tx, erasure.userId));
    await lockFinished(tx, erasure.userId);
    const unpublished = await countUnpublished(tx, erasure.userId);
    if (unpublished > 0) return { waiting: unpublished, rows: {} };
    const waiting = await countUnreceivedSince(tx, ask, erasure.userId, known);
    if (waiting > 0) return { waiting, rows: {} };
    return { waiting, rows: await eraseFound(tx, erasure), next_cursor: writeCursor(beginning) };
  });
}

// Asks about the events that were committed and published after the first question and before the
// locks. Changes of this user wait for the answer, so it must not take long.
async function countUnreceivedSince(
  tx: Transaction,
  ask: AskReceiver,
  userId: string,
  known: Set<string>,
): Promise<number> {
  const added = (await findPublishable(tx, userId)).filter(({ audit_id }) => !known.has(audit_id));
  if (added.length > maxPerCheck) return added.length;
  return await countUnreceived((ids) => ask(ids, answerUnderLocksMs), added);
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

// One pseudonym is one person until the erasure: a second one would be mixed up with the first.
async function refuseUsedPseudonym(tx: Transaction, { operationId }: Erasure): Promise<void> {
  const erased = await findEntitlements(tx, pseudonymOf(operationId));
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

const chainedOfUser = `with recursive chain as (
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
     )`;

function findChained(tx: Transaction, userId: string): Promise<AuditedRow[]> {
  return query<AuditedRow & Record<string, unknown>>(
    tx,
    `${chainedOfUser}
     select audit_id, ${utc("occurred_at")} as occurred_at
     from chain`,
    [userId],
  );
}

interface Publishable extends AuditedRow {
  is_in_outbox: boolean;
}

// All events that were not given up, in the order of the questions.
function findPublishable(on: Database | Transaction, userId: string): Promise<Publishable[]> {
  return query<Publishable & Record<string, unknown>>(
    on,
    `${chainedOfUser}
     select audit_id, ${utc("occurred_at")} as occurred_at, event_id is not null as is_in_outbox
     from chain
     left join outbox_events on event_id = audit_id
     where status is distinct from 'FAILED'
     order by is_in_outbox desc, chain.occurred_at desc`,
    [userId],
  );
}

const answerUnderLocksMs = 1_000;

// An event that the stream has not delivered yet would bring the user back. The stream counts an
// event's age from its publication, which the outbox remembers only for a while. So an event counts as
// on its way until it is received, for as long as the receiver remembers what it received.
async function countUnreceived(ask: AskReceiver, rows: Publishable[]): Promise<number> {
  let unreceived = 0;
  for (let i = 0; i < rows.length; i += maxPerCheck) {
    const page = rows.slice(i, i + maxPerCheck);
    const receipt = await ask(page.map(({ audit_id }) => audit_id));
    const missing = new Set(receipt.missing);
    const isRemembered = (row: Publishable) =>
      row.is_in_outbox || row.occurred_at >= receipt.remembered_since;
    unreceived += page.filter((row) => missing.has(row.audit_id) && isRemembered(row)).length;
    if (!page.some(isRemembered)) break;
  }
  return unreceived;
}

// Who puts one of these events back now waits, and then publishes it without the user. In the order of
// their ids, as by all who put events back; the relay has only others.
async function lockFinished(tx: Transaction, userId: string): Promise<void> {
  await query(
    tx,
    `${chainedOfUser}
     select
     from outbox_events row
     where row.event_id in (select audit_id from chain)
       and not row.unfinished
     order by row.event_id
     for update of row`,
    [userId],
  );
}

async function countUnpublished(tx: Transaction, userId: string): Promise<number> {
  const rows = await query(
    tx,
    `select
     from entitlements head
     join outbox_events row
       on ${isUnfinishedByKey("row")}
       and row.aggregate_key = aggregate_key_of(head.user_id, head.stock_keeping_unit)
     where head.user_id = $1`,
    [userId],
  );
  return rows.length;
}

async function eraseEntitlements(tx: Transaction, erasure: Erasure): Promise<void> {
  await recordErasure(tx, erasure, 0); // if none of their audit is left, and it was not recorded yet
  await query(tx, "select erase_entitlements($1, $2)", [erasure.operationId, erasure.userId]);
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
