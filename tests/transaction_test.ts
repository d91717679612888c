// What a transaction promises: all of it or nothing, and whoever hears of no error can rely on it.
import assert from "node:assert/strict";
import { query, transaction } from "../shared/postgres.ts";
import { openFresh } from "./databases.ts";
import { ask } from "./entitlement.ts";

const insert = `insert into operations (operation_id, kind, layer, who, reason, items)
  values (gen_random_uuid(), 'REPLAY', 'outbox', 'kim', 'test', '[]')`;

Deno.test("an error that is swallowed inside a transaction fails it: nothing was stored", async () => {
  await using place = await openFresh("entitlement");
  const swallowing = transaction(place.database, async (tx) => {
    await query(tx, insert);
    await query(tx, "select 1 / 0").catch(() => {});
    return "stored";
  });
  await assert.rejects(swallowing, /The transaction ended with ROLLBACK/);
  assert.equal(await operations(place.ownerUrl), 0);
});

Deno.test("what is thrown takes back what was done, and the connection serves the next", async () => {
  await using place = await openFresh("entitlement");
  const connections = Array.from({ length: 30 }, async () => { // more than the pool has
    await assert.rejects(
      transaction(place.database, async (tx) => {
        await query(tx, insert);
        throw new Error("changed its mind");
      }),
      /changed its mind/,
    );
  });
  await Promise.all(connections);
  assert.equal(await operations(place.ownerUrl), 0);
  await transaction(place.database, (tx) => query(tx, insert));
  assert.equal(await operations(place.ownerUrl), 1);
});

Deno.test("a connection that was lost inside a transaction is not used again", async () => {
  await using place = await openFresh("entitlement");
  const lost = transaction(place.database, async (tx) => {
    await query(tx, insert);
    await query(tx, "select pg_terminate_backend(pg_backend_pid())");
  });
  await assert.rejects(lost);
  for (let i = 0; i < 3; i++) await transaction(place.database, (tx) => query(tx, insert));
  assert.equal(await operations(place.ownerUrl), 3);
});

async function operations(ownerUrl: string): Promise<number> {
  const [found] = await ask<{ count: number }>(
    ownerUrl,
    "select count(*)::int as count from operations",
  );
  return found?.count ?? -1;
}
