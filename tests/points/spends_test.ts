// A balance is spent to 0 and not further, however many spend at once: P-113.
import assert from "node:assert/strict";
import { type Answer, assertError } from "../support/api.ts";
import { transactionsIn } from "../support/changes.ts";
import { startEntitlement } from "../support/entitlement.ts";
import {
  assertSums,
  balanceOf,
  grantPoints,
  inMs,
  reserve,
  spendPoints,
  transactionRows,
  untilAllAre,
} from "../support/points.ts";
import { startService } from "../../tools/servers/service_process.ts";

Deno.test("P-113: of 64 spends that race for a balance of 10 ten succeed, and replays repeat all answers", async () => {
  await using kenri = await startEntitlement();
  await using other = await startService("entitlement", kenri.settings);
  const { ownerUrl } = kenri.database;
  await grantPoints(kenri.url, { point_amount: 10 });
  const urls = [kenri.url, other.url];
  const spendAll = (turn: number) =>
    Promise.all(
      Array.from({ length: 64 }, (_, i) =>
        spendPoints(urls[(i + turn) % 2] ?? "", { point_amount: 1 }, `spend-${i}`)),
    );
  const first = await spendAll(0);
  const succeeded = first.filter(({ status }) => status === 200);
  assert.equal(succeeded.length, 10);
  for (const refused of first.filter((answer) => !succeeded.includes(answer))) {
    assertError(refused, 409, "INSUFFICIENT_POINTS");
  }
  const balances = succeeded.map(({ json }) => json.balance).sort((a, b) => a - b);
  assert.deepEqual(balances, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal(await balanceOf(kenri.url, "ann"), 0);

  await grantPoints(kenri.url, { point_amount: 100 }); // now all of them would succeed
  const again = await spendAll(1);
  const seen = ({ status, text }: Answer) => [status, text];
  assert.deepEqual(again.map(seen), first.map(seen));
  assert.ok(again.every(({ headers }) => headers.get("Idempotency-Replayed") === "true"));
  assert.equal(await balanceOf(kenri.url, "ann"), 100);
  assert.equal((await transactionRows(ownerUrl)).length, 12);
  await assertSums(ownerUrl);
});

Deno.test("spends race grants and due reservations of the same balance, and the sums agree", async () => {
  await using kenri = await startEntitlement();
  await using other = await startService("entitlement", kenri.settings);
  const { ownerUrl } = kenri.database;
  const urls = [kenri.url, other.url];
  const reserved = Array.from(
    { length: 40 },
    (_, i) => reserve(kenri.url, { point_amount: 3, execute_at: inMs(400 + i * 10) }),
  );
  await Promise.all(reserved);
  const asked = await Promise.all(Array.from({ length: 200 }, (_, i) => {
    const ask = i % 3 === 0 ? grantPoints : spendPoints;
    return ask(urls[i % 2] ?? "", { point_amount: i % 3 === 0 ? 4 : 5 });
  }));
  await untilAllAre(ownerUrl, ["DONE"]);
  const changed = asked.filter(({ status }) => status === 200);
  for (const { json, text } of changed) {
    assert.equal(json.balance, json.transaction.balance_after, text);
  }
  assert.ok(asked.every(({ status }) => status === 200 || status === 409));
  const sum = changed.reduce((sum, { json }) => sum + json.transaction.point_amount, 40 * 3);
  assert.equal(await balanceOf(kenri.url, "ann"), sum);
  await assertSums(ownerUrl);
  await Promise.all([kenri.service.stop(), other.stop()]);
  assert.deepEqual(await transactionsIn(ownerUrl), { rolledBack: 0, deadlocks: 0 });
});
