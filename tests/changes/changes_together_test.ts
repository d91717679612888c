// Changes and lists that arrived at the same time are handled in one statement. Each must still be
// answered from its own rows, and locks must be taken in one order.
import assert from "node:assert/strict";
import { lockNumber } from "../../shared/commands/locks.ts";
import { findEntitlements } from "../../entitlement/list_entitlements.ts";
import { ask, withClient } from "../../tools/servers/asking.ts";
import { openFresh } from "../support/databases.ts";
import { until } from "../../tools/servers/wait.ts";
import { changeOf, commitChanges } from "./change.ts";

// Not in alphabetical order, nor in the order in which they are used.
const users = ["mia", "bob", "zoe", "ann", "kim", "eve", "tom"];
const options = { idempotencyTtlMs: 60_000 };

Deno.test("of many lists that are requested at once, each user gets their own", async () => {
  await using place = await openFresh("entitlement");
  await commitChanges(
    place.database,
    users.map((userId) => changeOf({ userId, stockKeepingUnit: `of ${userId}` })),
    options,
  );
  const asked = [...users, "nobody", "ann"];
  const lists = (await findEntitlements(place.database, asked)).map((list) => JSON.parse(list));
  const items = lists.map((list: { stock_keeping_unit: string }[]) =>
    list.map(({ stock_keeping_unit }) => stock_keeping_unit)
  );
  assert.deepEqual(items, [...users.map((user) => [`of ${user}`]), [], ["of ann"]]);
});

Deno.test("entitlements that changed at the same moment are listed by their names", async () => {
  await using place = await openFresh("entitlement");
  const items = ["c", "a", "d", "b"];
  await commitChanges(
    place.database,
    items.map((item) => changeOf({ stockKeepingUnit: item })),
    options,
  );
  await ask(place.ownerUrl, "update entitlements set updated_at = now()");
  const [list = ""] = await findEntitlements(place.database, ["ann"]);
  const names = JSON.parse(list).map((one: { stock_keeping_unit: string }) =>
    one.stock_keeping_unit
  );
  assert.deepEqual(names, items.toSorted());
});

Deno.test("changes that are committed together are each decided by their own entitlement", async () => {
  await using place = await openFresh("entitlement");
  const granted = users.filter((_, i) => i % 2 === 0);
  await commitChanges(place.database, granted.map((userId) => changeOf({ userId })), options);
  const revokes = users.map((userId) => changeOf({ userId, action: "REVOKE" }));
  const { result } = await commitChanges(place.database, revokes, options);
  const seen = result.map(({ body }) => JSON.parse(body)).map((
    { user_id, version },
  ) => [user_id, version]);
  assert.deepEqual(seen, users.map((user) => [user, granted.includes(user) ? 2 : 1]));
});

Deno.test("first changes that are committed together each need capacity of their own user", async () => {
  await using place = await openFresh("entitlement");
  const full = users.filter((_, i) => i % 2 === 0);
  await commitChanges(place.database, full.map((userId) => changeOf({ userId })), options);
  const more = users.map((userId) => changeOf({ userId, stockKeepingUnit: "one more" }));
  const { result } = await commitChanges(place.database, more, { ...options, maxPerUser: 1 });
  assert.deepEqual(
    result.map(({ outcome }) => outcome),
    users.map((user) => full.includes(user) ? "over_limit" : "applied"),
  );
});

Deno.test("locks are taken from the lowest number to the highest", async () => {
  await using place = await openFresh("entitlement");
  const changes = users.map((userId) => changeOf({ userId }));
  const numbers = changes
    .flatMap(({ userId, stockKeepingUnit, idempotencyKey }) => [
      lockNumber(idempotencyKey),
      lockNumber(JSON.stringify([userId, stockKeepingUnit])),
    ])
    .sort((a, b) => a < b ? -1 : 1);
  const middle = numbers.length / 2;
  await withClient(place.ownerUrl, async (holder) => {
    await holder.query("begin");
    await holder.query("select pg_advisory_xact_lock($1)", [numbers[middle]]);
    const committing = commitChanges(place.database, changes, options);
    let held: bigint[] = [];
    await until("it waits for the lock in the middle", async () => {
      const { rows } = await holder.query<{ number: string; granted: boolean }>(
        `select (classid::bigint << 32 | objid::bigint)::text as number, granted
         from pg_locks
         where locktype = 'advisory' and pid <> pg_backend_pid()
           and database = (select oid from pg_database where datname = current_database())`,
      );
      held = rows.filter(({ granted }) => granted).map(({ number }) => BigInt(number));
      return rows.some(({ granted }) => !granted);
    });
    await holder.query("commit");
    await committing;
    const bySize = (a: bigint, b: bigint) => a < b ? -1 : 1;
    assert.deepEqual(held.sort(bySize), numbers.slice(0, middle));
  });
});

Deno.test("an entitlement has the times at which it was last granted and last revoked", async () => {
  await using place = await openFresh("entitlement");
  const times: string[] = [];
  for (const action of ["GRANT", "REVOKE", "GRANT", "REVOKE"] as const) {
    const { result: [answer] } = await commitChanges(
      place.database,
      [changeOf({ action })],
      options,
    );
    times.push(JSON.parse(answer?.body ?? "").updated_at);
    const [row] = await ask<{ granted_at: string; revoked_at: string | null }>(
      place.ownerUrl,
      `select to_char(granted_at at time zone 'UTC', $1) as granted_at,
         to_char(revoked_at at time zone 'UTC', $1) as revoked_at
       from entitlements`,
      ['YYYY-MM-DD"T"HH24:MI:SS.US"Z"'],
    );
    const last = (parity: number) => times.findLast((_, i) => i % 2 === parity) ?? null;
    assert.deepEqual(row, { granted_at: last(0), revoked_at: last(1) });
  }
});
