// What the services rely on in each connection and each transaction.
import assert from "node:assert/strict";
import {
  isUnavailable,
  lastTogether,
  query,
  schemaIsCurrent,
  together,
  type Transaction,
  transaction,
} from "../../shared/postgres/postgres.ts";
import { openFresh } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";

const insert = `insert into operations (operation_id, kind, layer, who, reason, items)
  values (gen_random_uuid(), 'REPLAY', 'outbox', 'kim', 'test', '[]')`;

Deno.test("an error that is ignored inside a transaction fails it: nothing was stored", async () => {
  await using place = await openFresh("entitlement");
  const swallowing = transaction(place.database, async (tx) => {
    await query(tx, insert);
    await query(tx, "select 1 / 0").catch(() => {});
    return "stored";
  });
  await assert.rejects(swallowing, /The transaction ended with ROLLBACK/);
  assert.equal(await operations(place.ownerUrl), 0);
});

Deno.test("an exception rolls the transaction back, and the connection can be used again", async () => {
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

Deno.test("of statements that were sent together, the first one that fails is the cause", async () => {
  await using place = await openFresh("entitlement");
  const failing = transaction(place.database, (tx) =>
    together([
      query(tx, "select 1 / 0"),
      Promise.reject(new Error("known sooner")),
    ]));
  await assert.rejects(failing, /division by zero/);
});

Deno.test("the commit goes along with the last statements, unless one of them fails or can't be sent", async () => {
  await using place = await openFresh("entitlement");
  const end = (second: (tx: Transaction) => Promise<unknown>) =>
    transaction(place.database, (tx) => lastTogether(tx, [query(tx, insert), second(tx)]));
  await end((tx) => query(tx, insert));
  await assert.rejects(end((tx) => query(tx, "select 1 / 0")), /division by zero/);
  const unsent = async () => {
    await Promise.resolve();
    throw new Error("can't be sent");
  };
  await assert.rejects(end(unsent), /can't be sent/);
  assert.equal(await operations(place.ownerUrl), 2);
});

Deno.test("no statement is sent behind a commit that has gone along", async () => {
  await using place = await openFresh("entitlement");
  const late = transaction(place.database, async (tx) => {
    await lastTogether(tx, [query(tx, insert)]);
    await query(tx, insert);
  });
  await assert.rejects(late, /Sent after the commit: insert/);
  assert.equal(await operations(place.ownerUrl), 1);
  await transaction(place.database, (tx) => query(tx, insert));
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

Deno.test("more callers than connections wait for one, but not for long", async () => {
  await using place = await openFresh("entitlement");
  const { database } = place;
  const held = await Promise.all(Array.from({ length: 10 }, () => database.connect()));
  const from = performance.now();
  const [waits, late] = [query(database, "select 1"), query(database, "select 1")];
  held.pop()?.release();
  await waits;
  await late; // the first caller has returned its connection
  held.push(await database.connect());
  const refused = await query(database, "select 1").catch((error) => error);
  const waitedMs = performance.now() - from;
  for (const connection of held) connection.release();
  assert.ok(isUnavailable(refused));
  assert.ok(waitedMs > 2_500 && waitedMs < 15_000, `${waitedMs}`);
});

Deno.test("newer migrations than the service needs are accepted, older ones are not", async () => {
  await using place = await openFresh("entitlement");
  const [{ applied } = { applied: 0 }] = await ask<{ applied: number }>(
    place.ownerUrl,
    "select max(version)::int as applied from schema_migrations",
  );
  for (const [version, isCurrent] of [[applied - 1, true], [applied, true], [applied + 1, false]]) {
    assert.equal(await schemaIsCurrent(place.database, Number(version)), isCurrent);
  }
  await ask(place.ownerUrl, "delete from schema_migrations");
  assert.equal(await schemaIsCurrent(place.database, 1), false);
});

async function operations(ownerUrl: string): Promise<number> {
  const [found] = await ask<{ count: number }>(
    ownerUrl,
    "select count(*)::int as count from operations",
  );
  return found?.count ?? -1;
}
