// The role of the service can read balances and transactions; functions of the owner write them.
import assert from "node:assert/strict";
import { refuses } from "../database/refuses.ts";
import { freshDatabase, withClient } from "../support/databases.ts";
import { appendPoints } from "./appended.ts";

const byFunctionsOnly = [
  "insert into point_root select * from point_root",
  "update point_root set balance = 1000000",
  "update point_root set updated_at = now()",
  "delete from point_root",
  "truncate point_root",
  "select from point_root for update",
  "insert into point_transactions select * from point_transactions",
  "update point_transactions set point_amount = 1000000",
  "update point_transactions set idempotency_key = 'other'",
  "delete from point_transactions",
  "truncate point_transactions",
  "insert into entitlement_audit select * from entitlement_audit",
  "update entitlement_audit set action = 'POINTS_ADD'",
  "delete from erased_keys",
  "insert into erased_keys values ('x')",
  "drop index point_transactions_idempotency_key_key",
  "alter table point_root alter column balance drop not null",
  "alter function append_points(json) security invoker",
  "create or replace function append_points(entries json) returns void language sql as 'select 1'",
  "select seal_next(null, null, 'x', '{}')",
  "select chain_hash(null, 'x', '{}')",
];

Deno.test("the service can't write balances, transactions or their audit by itself", async (t) => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    await service.query(appendPoints([{}]));
    for (const statement of byFunctionsOnly) {
      await t.step(statement, () => refuses(service, statement));
    }
  });
});

Deno.test("points are erased only for an operation on record, and only those of the person", async () => {
  await using database = await freshDatabase("entitlement");
  await withClient(database.serviceUrl, async (service) => {
    await service.query(appendPoints([{}, { user_id: "bob" }]));
    const erase = async (operation: string, person: string) =>
      (await service.query("select erase_points($1, $2) as rows", [operation, person])).rows[0]
        .rows;
    await assert.rejects(erase(crypto.randomUUID(), "ann"), /no erasure has the operation_id/);
    const operation = crypto.randomUUID();
    await service.query(
      `insert into operations (operation_id, kind, layer, who, reason, items)
       values ($1, 'ERASE_USER', 'user', 'kim', 'r', '[]')`,
      [operation],
    );
    await assert.rejects(erase(operation, `erased-${operation}`), /a pseudonym/);
    assert.deepEqual(await erase(operation, "ann"), {
      ...{ point_root: 1, point_transactions: 1, point_reservations: 0 },
    });
    const { rows } = await service.query("select user_id, source_id from point_transactions");
    assert.deepEqual(rows.map(({ user_id, source_id }) => `${user_id} ${source_id}`).sort(), [
      "bob 1",
      `erased-${operation} erased`,
    ]);
  });
});
