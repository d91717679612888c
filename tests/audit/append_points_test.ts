// Points are appended by a function of the database's owner, which refuses transactions that do not
// follow.
import assert from "node:assert/strict";
import type pg from "pg";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { ask } from "../../tools/servers/asking.ts";
import { freshDatabase, withClient } from "../support/databases.ts";
import { append, appendPoints, change, points } from "./appended.ts";

const second = { version: 2, balance: 20 };
const bob = { user_id: "bob" };

// Transactions that an attacker who controls the service could try to append. Ann has 10 points.
const notFollowing: [what: string, forged: Parameters<typeof appendPoints>[0], at?: string][] = [
  ["the version it has", [{ version: 1, balance: 20 }]],
  ["a version that leaves one out", [{ version: 3, balance: 20 }]],
  ["no version", [{ version: null, balance: 20 }]],
  ["a first version that is not 1", [{ ...bob, version: 2 }]],
  ["a balance that does not add up", [{ ...second, balance: 21 }]],
  ["a first balance that does not add up", [{ ...bob, balance: 11 }]],
  ["no balance", [{ ...second, balance: null }]],
  ["no amount", [{ ...second, point_amount: null }]],
  ["an amount of zero", [{ version: 2, point_amount: 0 }]],
  ["a negative balance", [{ version: 2, point_amount: -11, balance: -1 }]],
  ["a balance above the limit", [
    { version: 2, point_amount: 2 ** 53 - 10, balance: 2 ** 53 },
  ]],
  ["an amount beyond all numbers", [
    { version: 2, point_amount: "9223372036854775807", balance: "-9223372036854775799" },
  ]],
  ["nobody", [{ user_id: null }]],
  ["an empty name", [{ user_id: "" }]],
  ["a unit that there can't be", [{ ...bob, unit: "Gold" }]],
  ["no unit", [{ ...bob, unit: null }]],
  ["no key", [{ ...second, idempotency_key: null }]],
  ["a key that was used", [{ ...second, idempotency_key: "first" }]],
  ["a key that another user has used", [{ ...bob, idempotency_key: "first" }]],
  ["a key twice", [{ ...bob, idempotency_key: "k" }, { ...bob, ...second, idempotency_key: "k" }]],
  [
    "an id twice",
    [points, { ...bob, ...second }].map((one) => ({
      ...one,
      ...bob,
      id: "00000000-0000-4000-8000-000000000001",
    })),
  ],
  ["a version twice", [bob, bob]],
  ["versions with one left out between", [bob, { ...bob, version: 3, balance: 20 }]],
  ["balances that do not follow each other", [bob, { ...bob, version: 2, balance: 30 }]],
  ["one good and one bad", [bob, { user_id: "cid", version: 2 }]],
  ["later versions at earlier times", [{ ...bob, ...second }, bob]],
  ["a time before the transaction", [bob], "now() - interval '1 us'"],
  ["a time that is not yet", [bob], "clock_timestamp() + interval '20 ms'"],
  ["a time before Christ", [bob], "timestamp '0044-03-15 BC'"],
  ["no time", [bob], "null::timestamptz"],
  ["an endless time", [bob], "timestamp 'infinity'"],
  ["the time it has", [second], "(select updated_at from point_root)"],
];

Deno.test("append_points refuses what does not follow, or is not of this moment", async (t) => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    await service.query(appendPoints([{ idempotency_key: "first" }]));
    for (const [what, forged, at] of notFollowing) {
      await t.step(what, async () => {
        const refusal =
          /does not follow|violates (check|unique|not-null)|bigint out of range|out of range/;
        await assert.rejects(service.query(appendPoints(forged, at)), refusal);
        assert.deepEqual(await stateOf(service), { transactions: 1, audited: 1, roots: 1 });
      });
    }
  });
});

async function stateOf(client: pg.Client): Promise<Record<string, number>> {
  const { rows: [state] } = await client.query(
    `select (select count(*)::int from point_transactions) as transactions,
       (select count(*)::int from entitlement_audit) as audited,
       (select count(*)::int from point_root) as roots`,
  );
  return state;
}

Deno.test("transactions of several balances, and several of one, are appended by one call", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    await service.query(appendPoints([{}, { ...second }]));
    await service.query(appendPoints([
      { version: 3, point_amount: -15, balance: 5 },
      { ...bob, point_amount: 7, balance: 7 },
      { unit: "silver" },
      { version: 4, balance: 15 },
      { ...bob, version: 2, point_amount: -7, balance: 0 },
    ]));
    const { rows } = await service.query(
      `select user_id || ' ' || unit || ' ' || balance || ' ' || version as has
       from point_root order by 1`,
    );
    assert.deepEqual(rows.map(({ has }) => has), [
      "ann gold 15 4",
      "ann silver 10 1",
      "bob gold 0 2",
    ]);
    const { rows: links } = await service.query(
      `select count(*)::int as broken
       from entitlement_audit later
       left join entitlement_audit earlier
         on earlier.occurred_at = later.previous_at
         and earlier.hash = later.previous_hash
         and (earlier.detail->>'version')::int = (later.detail->>'version')::int - 1
         and earlier.user_id = later.user_id
       where earlier.audit_id is null
         and later.detail->>'version' <> '1'`,
    );
    assert.deepEqual(links, [{ broken: 0 }]);
  });
});

Deno.test("of two concurrent transactions that follow the same one, or have the same key, one is appended", async (t) => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, (one) =>
    withClient(database.serviceUrl, async (other) => {
      const race = async (first: string, late: string) => {
        await one.query("begin");
        await one.query(first);
        const refused = assert.rejects(other.query(late), /violates unique|does not follow/);
        await one.query("commit");
        await refused;
      };
      await t.step("the first", () => race(appendPoints([{}]), appendPoints([{}])));
      await t.step("the next", () => race(appendPoints([second]), appendPoints([second])));
      const key = { idempotency_key: "key" };
      await t.step("the key", () =>
        race(appendPoints([{ ...bob, ...key }]), appendPoints([{ user_id: "cid", ...key }])));
      assert.deepEqual(await stateOf(one), { transactions: 3, audited: 3, roots: 2 });
    }));
});

Deno.test("many transactions in one call can't carry a balance into the future", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    const many = Array.from({ length: 500 }, (_, i) => ({ version: i + 1, balance: (i + 1) * 10 }));
    const append = (step: string) => service.query(appendPoints(many, "clock_timestamp()", step));
    await assert.rejects(append("1 ms"), /does not follow/);
    await append("1 us");
  });
});

Deno.test("if the clock was set back, the times of a balance still increase", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    await service.query(appendPoints([{}]));
    await ask(database.ownerUrl, "update point_root set updated_at = now() + interval '1 hour'");
    const after = "(select updated_at + interval '1 us' from point_root)";
    await service.query(appendPoints([second, { version: 3, balance: 30 }], after));
    const later = "(select updated_at + interval '2 us' from point_root)";
    await assert.rejects(
      service.query(appendPoints([{ version: 4, balance: 40 }], later)),
      /does not follow/,
    );
  });
});

// The sessions of the service keep plans that were made while the tables were empty.
Deno.test("appending reads a few rows by index, by a plan from when the tables were empty", async () => {
  await using database = await freshDatabase("entitlement");
  const pool = openDatabase(database.serviceUrl, "test");
  try {
    const service = await pool.connect();
    const send = async (from: number, to: number) => {
      for (let i = from; i < to; i++) {
        await service.query(appendPoints([{ user_id: `user-${i}` }]));
      }
    };
    await send(0, 20);
    await ask(
      database.ownerUrl,
      `insert into point_root (user_id, unit, balance, version, updated_at, last_hash)
       select 'other-' || n, 'gold', 1, 1, now(), ''
       from generate_series(1, 20000) as n`,
    );
    await send(20, 40);
    service.release();
  } finally {
    await pool.end(); // the counters are complete once the sessions have ended
  }
  const [read] = await ask<{ rows: number }>(
    database.ownerUrl,
    `select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows
     from pg_stat_user_tables
     where relname in ('point_root', 'point_transactions')`,
  );
  assert.ok(read && read.rows < 1_000, `${read?.rows} rows were read for 40 transactions`);
});

// A user may have a right that is named like the audit of a balance.
Deno.test("a right may have the name of a balance in the audit, and both are appended", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    await service.query(append({ ...change, stock_keeping_unit: "points:gold" }));
    await service.query(appendPoints([{}]));
    await service.query(
      append({ ...change, stock_keeping_unit: "points:gold", action: "REVOKE", version: 2 }),
    );
    await service.query(appendPoints([second]));
    assert.deepEqual(await stateOf(service), { transactions: 2, audited: 4, roots: 1 });
  });
});
