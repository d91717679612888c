// Changes are appended by a function of the database's owner, which refuses those that do not
// follow.
import assert from "node:assert/strict";
import { migrate } from "../../migrations/migrate.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { append, change } from "./appended.ts";
import { migrationsOf } from "../../tools/servers/databases.ts";
import { freshDatabase, withClient } from "../support/databases.ts";
import { changeAsBefore } from "../database/release_before.ts";

// Changes that an attacker who controls the service could try to append.
const notFollowing: [what: string, change: Record<string, unknown>, at?: string][] = [
  ["the version it has", { action: "REVOKE", version: 1 }],
  ["a version that leaves one out", { action: "REVOKE", version: 3 }],
  ["no version", { action: "REVOKE", version: null }],
  ["the status it has", { version: 2 }],
  ["neither grant nor revoke", { action: "GIVE", version: 2 }],
  ["a first version that is not 1", { user_id: "bob", version: 2 }],
  ["a time before the transaction", { user_id: "bob" }, "now() - interval '1 us'"],
  ["a time that is not yet", { user_id: "bob" }, "clock_timestamp() + interval '1 second'"],
  ["a time before Christ", { user_id: "bob" }, "timestamp '0044-03-15 BC'"],
  ["no time", { user_id: "bob" }, "null::text"],
  ["an endless time", { user_id: "bob" }, "timestamp 'infinity'"],
  ["the time it has", { action: "REVOKE", version: 2 }, "(select updated_at from entitlements)"],
];

Deno.test("append_changes refuses a change that does not follow the one before, or is not of this moment", async (t) => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    await service.query(append(change));
    for (const [what, other, at] of notFollowing) {
      await t.step(
        what,
        () =>
          assert.rejects(
            service.query(append({ ...change, ...other }, at)),
            /does not follow|violates check/,
          ),
      );
    }
    const twice = append({ ...change, user_id: "bob" }).replace(
      /json_build_array\(([^]*)\)\)$/,
      (_, one) => `json_build_array(${one}), ${one})))`,
    );
    await t.step("twice at once", () => assert.rejects(service.query(twice)));
    const { rows } = await service.query("select from entitlement_audit");
    assert.equal(rows.length, 1);
    // If the clock was set back, the times still increase.
    await withClient(
      database.ownerUrl,
      (owner) => owner.query("update entitlements set updated_at = now() + interval '1 hour'"),
    );
    const after = "(select updated_at + interval '1 us' from entitlements)";
    await service.query(append({ ...change, action: "REVOKE", version: 2 }, after));
  });
});

Deno.test("of two concurrent changes that both follow the same one, one is appended", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, (one) =>
    withClient(database.serviceUrl, async (other) => {
      await one.query(append(change));
      const revoke = append({ ...change, action: "REVOKE", version: 2 });
      await one.query("begin");
      await one.query(revoke);
      const late = assert.rejects(other.query(revoke), /does not follow/);
      await one.query("commit");
      await late;
      const { rows } = await one.query("select from entitlement_audit");
      assert.equal(rows.length, 2);
    }));
});

Deno.test("a change can't be backdated by a transaction that was held open", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    // A shorter limit than the real one, so that the test need not wait for it.
    await withClient(database.ownerUrl, async (owner) => {
      const { rows: [{ made }] } = await owner.query(
        "select pg_get_functiondef('append_changes'::regproc) as made",
      );
      assert.match(made, /interval '1 minute'/);
      await owner.query(made.replace("interval '1 minute'", "interval '100 ms'"));
    });
    await service.query("begin");
    await service.query(append(change, "now()"));
    await new Promise((passed) => setTimeout(passed, 200));
    await assert.rejects(
      service.query(append({ ...change, user_id: "bob" }, "now()")),
      /does not follow/,
    );
  });
});

// Replicas of the previous release write the audit themselves while they are being replaced.
Deno.test("until a day after the migration the service may write the audit itself, with the current time", async () => {
  await using database = await freshDatabase("entitlement");
  const until = (time: string) =>
    withClient(
      database.ownerUrl,
      (owner) => owner.query(`update audit_retention set direct_until = ${time}`),
    );
  const migrateAgain = () =>
    migrate({ folder: migrationsOf("entitlement"), say: () => {}, ...database });
  const pool = openDatabase(database.serviceUrl, "before");
  const refused = { code: "42501" };
  try {
    await until("now() + interval '1 day'");
    await migrateAgain();
    await changeAsBefore(pool, { user: "ann", version: 1 });
    await changeAsBefore(pool, { user: "ann", version: 2 });
    for (
      const at of ["2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "0044-03-15 BC", "infinity"]
    ) {
      await assert.rejects(changeAsBefore(pool, { user: `at ${at}`, version: 1, at }), refused, at);
    }
    await until("now() - interval '1 second'");
    const late = { code: "42501", message: "changes are appended by append_changes" };
    await assert.rejects(changeAsBefore(pool, { user: "ann", version: 3 }), late);
    await migrateAgain();
    await assert.rejects(changeAsBefore(pool, { user: "ann", version: 3 }), /permission denied/);
  } finally {
    await pool.end();
  }
});
