import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import type { ChangeRequest } from "./decide_change.ts";
import { type Change, storedKeyOf } from "./entitlement.ts";
import { sha256 } from "@kenri/shared/process/sha256.ts";

// A change takes an advisory lock for its idempotency key and one for its entitlement, whose row
// may not exist yet. Where the entitlements of a user are counted, the user has a lock as well, so
// that none is added meanwhile. The other two remain, because a replica with other settings may not
// count.

type Named = Pick<Change, "userId" | "stockKeepingUnit">;

// The batch never commits two changes with a common key at the same time. The word before the
// idempotency key distinguishes it from an entitlement, because a client may choose any key.
export function keysOf(change: Change, counted: boolean): string[] {
  const keys = [`key ${storedKeyOf(change)}`, entitlementLock(change)];
  return counted ? [...keys, userLock(change)] : keys;
}

export function lockRequests(
  tx: Transaction,
  requests: ChangeRequest[],
  counted: boolean,
): Promise<void> {
  return lock(
    tx,
    requests.flatMap((request) => [
      request.storedKey,
      entitlementLock(request),
      ...(counted ? [userLock(request)] : []),
    ]),
  );
}

// For code that changes entitlements without a request.
export function lockEntitlements(tx: Transaction, entitlements: Named[]): Promise<void> {
  return lock(tx, entitlements.map(entitlementLock));
}

function entitlementLock({ userId, stockKeepingUnit }: Named): string {
  return JSON.stringify([userId, stockKeepingUnit]);
}

function userLock({ userId }: Named): string {
  return JSON.stringify([userId]);
}

// Every transaction takes its locks in ascending order, so two replicas can't deadlock.
async function lock(tx: Transaction, names: string[]): Promise<void> {
  const numbers = names.map(lockNumber);
  numbers.sort((a, b) => a < b ? -1 : a > b ? 1 : 0);
  await query(
    tx,
    `select count(pg_advisory_xact_lock(number)) from unnest($1::bigint[]) as number`,
    [`{${numbers.join()}}`],
  );
}

export function lockNumber(name: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${sha256(name).slice(0, 16)}`));
}
