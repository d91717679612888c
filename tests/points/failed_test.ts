// A reservation that can't be carried out fails alone, and is granted when it is sent back: P-110.
import assert from "node:assert/strict";
import { assertError } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import {
  assertSums,
  balanceOf,
  find,
  grantPoints,
  inMs,
  listOf,
  reservationRows,
  reserve,
  spendPoints,
  untilAllAre,
} from "../support/points.ts";
import { operate } from "../support/stack.ts";

const operators = { ENTITLEMENT_DEBUG_ENABLED: "true" };
const mostPoints = Number.MAX_SAFE_INTEGER;

const sendBack = ({ url }: Entitlement, id: string) =>
  operate(url, "/operations/entitlement/dead-letters/send-back", {
    layer: "reservation",
    ids: [id],
  });

/** One for ann, among others that are due at the same time. */
async function reserveAmongOthers({ url }: Entitlement): Promise<string> {
  const execute_at = inMs(700);
  const others = Array.from({ length: 10 }, (_, i) =>
    reserve(url, {
      user_id: `user-${i}`,
      execute_at,
    }));
  const { reservation_id } = (await reserve(url, { point_amount: 1, execute_at })).json;
  const unit = await reserve(url, { point_amount: 1, unit: "coins", execute_at });
  for (const { status } of [...await Promise.all(others), unit]) assert.equal(status, 202);
  return reservation_id;
}

async function assertFailedAlone(
  { database: { ownerUrl } }: Entitlement,
  id: string,
): Promise<void> {
  const rows = await untilAllAre(ownerUrl, ["DONE", "FAILED"]);
  const failed = rows.filter(({ status }) => status === "FAILED");
  assert.deepEqual(failed.map((row) => row.id), [id]);
  const others = rows.filter((row) => row.id !== id);
  assert.equal(others.length, 11);
  assert.ok(others.every(({ attempt_count }) => attempt_count === 0));
}

Deno.test("P-110: one that would exceed the highest balance fails alone and at once; sent back it is granted", async () => {
  await using kenri = await startEntitlement(operators);
  const { url, database: { ownerUrl } } = kenri;
  const most = await grantPoints(url, { point_amount: mostPoints });
  assert.equal(most.json.balance, mostPoints, most.text);
  const id = await reserveAmongOthers(kenri);
  await assertFailedAlone(kenri, id);
  const failed = (await find(url, id)).json;
  assert.equal(failed.status, "FAILED");
  assert.match(failed.last_error, /balance/);

  assert.equal((await spendPoints(url, { point_amount: 5 })).status, 200);
  const { dead_letters } = await sendBack(kenri, id);
  assert.deepEqual(dead_letters.map((one: { outcome: string }) => one.outcome), ["SENT_BACK"]);
  await untilAllAre(ownerUrl, ["DONE"]);
  assert.equal((await find(url, id)).json.status, "DONE");
  const { json } = await listOf(url, "ann", "points", { unit: "points" });
  assert.equal(json.balances[0].balance, mostPoints - 4);
  await assertSums(ownerUrl);
});

Deno.test("P-110: one whose attempts are used up fails alone; sent back it has all of them again", async () => {
  await using kenri = await startEntitlement({
    ...operators,
    ENTITLEMENT_RESERVATIONS_MAX_ATTEMPTS: "3",
    ENTITLEMENT_RESERVATIONS_BACKOFF_BASE: "10ms",
    ENTITLEMENT_RESERVATIONS_BACKOFF_MIN: "10ms",
  });
  const { url, database: { ownerUrl } } = kenri;
  await kenri.rows(
    `create function refuse_ann() returns trigger language plpgsql as $$
     begin
       if new.user_id = 'ann' and new.unit = 'points' then raise 'ann gets nothing'; end if;
       return new;
     end $$`,
  );
  await kenri.rows(
    `create trigger refuse_ann before insert on point_transactions
     for each row execute function refuse_ann()`,
  );
  const id = await reserveAmongOthers(kenri);
  await assertFailedAlone(kenri, id);
  const [row] = (await reservationRows(ownerUrl)).filter((row) => row.id === id);
  assert.equal(row?.attempt_count, 3);
  assert.match(row?.last_error ?? "", /ann gets nothing/);
  await kenri.rows("drop trigger refuse_ann on point_transactions");
  await sendBack(kenri, id);
  await untilAllAre(ownerUrl, ["DONE"]);
  assert.equal((await find(url, id)).json.attempt_count, 0);
  await assertSums(ownerUrl);
});

Deno.test("a balance has a limit, also the one of the settings, for grants and reservations alike", async () => {
  await using kenri = await startEntitlement({ ENTITLEMENT_POINTS_MAX_BALANCE: "100" });
  const { url, database: { ownerUrl } } = kenri;
  assert.equal((await grantPoints(url, { point_amount: 100 })).status, 200);
  const over = await grantPoints(url, { point_amount: 1 });
  assertError(over, 409, "POINTS_LIMIT_REACHED");
  assert.equal((await grantPoints(url, { point_amount: 1, unit: "coins" })).status, 200);
  await reserve(url, { point_amount: 101, user_id: "bob" });
  const [row] = await untilAllAre(ownerUrl, ["FAILED"]);
  assert.equal(row?.attempt_count, 1);
  await spendPoints(url, { point_amount: 1 });
  assert.equal((await grantPoints(url, { point_amount: 1 })).status, 200);
  assert.equal(await balanceOf(url, "bob"), 0);
  await assertSums(ownerUrl);
});

Deno.test("no balance exceeds the highest whole number of JSON, and the refusal is replayed", async () => {
  await using kenri = await startEntitlement();
  const { url, database: { ownerUrl } } = kenri;
  const most = await grantPoints(url, { point_amount: mostPoints });
  assert.deepEqual([most.status, most.json.balance], [200, mostPoints]);
  const over = await grantPoints(url, { point_amount: mostPoints }, "over");
  assertError(over, 409, "POINTS_LIMIT_REACHED");
  const again = await grantPoints(url, { point_amount: mostPoints }, "over");
  assert.deepEqual([again.text, again.headers.get("Idempotency-Replayed")], [over.text, "true"]);
  const all = await spendPoints(url, { point_amount: mostPoints });
  assert.deepEqual([all.status, all.json.balance], [200, 0]);
  assert.equal(all.json.transaction.point_amount, -mostPoints);
  await assertSums(ownerUrl);
});
