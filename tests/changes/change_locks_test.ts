// Changes take their advisory locks in the order of the lock numbers, whatever order they arrived
// in. So replicas can't deadlock.
import assert from "node:assert/strict";
import { entitlementLock } from "../../entitlement/change_locks.ts";
import { lockNames } from "../../shared/commands/locks.ts";
import { type Database, type Transaction, transaction } from "../../shared/postgres/postgres.ts";
import { openFresh, withClient } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { advisoryLocksHeld, waitingForLocks, whileTableIsLocked } from "../support/locks.ts";
import { until } from "../../tools/servers/wait.ts";
import { changeOf, commitChanges } from "./change.ts";

const changes = ["ann", "bob", "cem", "dan", "eve"].map((userId, i) =>
  changeOf({ userId, idempotencyKey: `key-${i}` })
);

Deno.test("a batch of changes takes its advisory locks in ascending order", async () => {
  const options = { idempotencyTtlMs: 60_000, maxPerUser: 10 };
  const count = 3 * changes.length; // key, entitlement and user
  await assertAscending(count, (database) => commitChanges(database, changes, options));
});

Deno.test("code that changes entitlements without a request takes their locks in ascending order", async () => {
  await assertAscending(
    changes.length,
    (database) => transaction(database, (tx) => lockThenRead(tx, changes)),
  );
});

async function lockThenRead(tx: Transaction, named: typeof changes): Promise<void> {
  await lockNames(tx, named.map(entitlementLock));
  await tx.query("select from entitlements");
}

/** Holds each of the locks in turn, and checks which other locks the work has while it waits. */
async function assertAscending(
  count: number,
  work: (database: Database) => Promise<unknown>,
): Promise<void> {
  await using place = await openFresh("entitlement");
  const { ownerUrl, database } = place;
  const all = await whileTableIsLocked(ownerUrl, "entitlements", async (release) => {
    const working = work(database);
    await until("it waits", async () => await waitingForLocks(ownerUrl) === 1);
    const held = await advisoryLocksHeld(ownerUrl);
    await release();
    await working;
    return held;
  });
  assert.equal(all.length, count);
  for (const number of all) {
    await ask(ownerUrl, "delete from idempotency_keys"); // a stored answer needs no lock
    await withClient(ownerUrl, async (owner) => {
      await owner.query("begin");
      await owner.query("select pg_advisory_xact_lock($1)", [`${number}`]);
      const working = work(database);
      await until("it waits", async () => await waitingForLocks(ownerUrl) === 1);
      const held = await advisoryLocksHeld(ownerUrl);
      await owner.query("rollback");
      await working;
      const smaller = all.filter((other) => other < number);
      assert.deepEqual(held, smaller, `while ${number} is held`);
    });
  }
}
