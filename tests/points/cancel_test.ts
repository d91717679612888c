// Cancelling: once, before it is carried out, and against the worker exactly one wins: P-106.
import assert from "node:assert/strict";
import { type Answer, assertError } from "../support/api.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { waitingForLocks, whileTableIsLocked } from "../support/locks.ts";
import {
  assertSums,
  balanceOf,
  cancel,
  find,
  inMs,
  insertReservations,
  newKey,
  paths,
  reservationRows,
  reserve,
  reserveRight,
  transactionRows,
  untilAllAre,
} from "../support/points.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";

const ahead = () => ({ execute_at: inMs(3_600_000) });

function assertConflict(answer: Answer, status: string): void {
  assertError(answer, 409, "RESERVATION_STATE_CONFLICT", `already ${status}`);
}

Deno.test("a reservation is cancelled, and repeated that gets the same bytes", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  const reserved = await reserve(url, ahead());
  const { status: _, ...same } = reserved.json;
  const id: string = reserved.json.reservation_id;
  const cancelled = await cancel(url, id.toUpperCase());
  assert.equal(cancelled.status, 200, cancelled.text);
  for (const [name, value] of Object.entries(same)) assert.deepEqual(cancelled.json[name], value);
  assert.equal(cancelled.json.status, "CANCELLED");
  assert.equal(typeof cancelled.json.done_at, "string");
  const again = await cancel(url, id);
  assert.deepEqual([again.status, again.text], [200, cancelled.text]);
  assert.deepEqual((await find(url, id)).json, cancelled.json);
  assert.deepEqual((await find(url, id.toUpperCase())).json, cancelled.json);
});

Deno.test("a cancelled reservation is never carried out, and its request gets its first answer", async () => {
  await using kenri = await startEntitlement();
  const { url, database: { ownerUrl } } = kenri;
  const body = ahead();
  const key = newKey();
  const reserved = await reserve(url, body, key);
  await cancel(url, reserved.json.reservation_id);
  await reserve(url, { ...body, user_id: "bob" });
  await kenri.rows("update point_reservations set execute_at = now()");
  await untilAllAre(ownerUrl, ["DONE", "CANCELLED"]);
  assert.equal((await reserve(url, body, key)).text, reserved.text);
  assert.deepEqual((await transactionRows(ownerUrl)).map(({ user_id }) => user_id), ["bob"]);
});

Deno.test("what is done, in work or failed can't be cancelled, and its state stays", async () => {
  await using kenri = await startEntitlement();
  const { url, database: { ownerUrl } } = kenri;
  const { reservation_id } = (await reserve(url)).json;
  await untilAllAre(ownerUrl, ["DONE"]);
  assertConflict(await cancel(url, reservation_id), "DONE");
  await kenri.rows("update point_reservations set status = 'FAILED', done_at = null");
  assertConflict(await cancel(url, reservation_id), "FAILED");
  await kenri.rows(
    `update point_reservations
     set status = 'PROCESSING', lease_until = now() + interval '1 hour', claim_token = id`,
  );
  assertConflict(await cancel(url, reservation_id), "PROCESSING");
  const [row] = await reservationRows(ownerUrl);
  assert.equal(row?.status, "PROCESSING");
});

Deno.test("a right that is reserved is found and cancelled at its own path only", async () => {
  await using kenri = await startEntitlement();
  const { url } = kenri;
  const right = (await reserveRight(url, ahead())).json.reservation_id;
  const points = (await reserve(url, ahead())).json.reservation_id;
  for (const [id, path] of [[right, paths.reserve], [points, paths.reserveRight]] as const) {
    assertError(await find(url, id, {}, path), 404, "NOT_FOUND");
    assertError(await cancel(url, id, {}, path), 404, "NOT_FOUND");
  }
  const cancelled = await cancel(url, right, {}, paths.reserveRight);
  assert.deepEqual([cancelled.status, cancelled.json.status], [200, "CANCELLED"]);
  const again = await cancel(url, right, {}, paths.reserveRight);
  assert.equal(again.text, cancelled.text);
});

Deno.test("an id that is unknown, or no id at all, is not found or refused", async () => {
  await using kenri = await startEntitlement();
  for (const path of [paths.reserve, paths.reserveRight]) {
    for (const ask of [find, cancel]) {
      assertError(await ask(kenri.url, crypto.randomUUID(), {}, path), 404, "NOT_FOUND");
      for (const id of ["x", "0", "%00", "null", `${crypto.randomUUID()}0`, "%ff"]) {
        const { status, json } = await ask(kenri.url, id, {}, path);
        assert.ok([400, 404].includes(status), `${id}: ${JSON.stringify(json)}`);
        assert.deepEqual(Object.keys(json), ["code", "message"]);
      }
    }
  }
});

Deno.test("P-106: 1,000 cancels race 1,000 due reservations: each ends one way, and the sums agree", async () => {
  await using kenri = await startEntitlement();
  const { url, database: { ownerUrl } } = kenri;
  await using other = await startService("entitlement", kenri.settings);
  const ids = await insertReservations(ownerUrl, {
    ...{ count: 1_000, users: 7, fromMs: 500, overMs: 2_000 },
  });
  // The rows are due one after the other, and are cancelled in any order meanwhile.
  const turns = ids.map((id) => ({ id, turn: Math.random() })).sort((a, b) => a.turn - b.turn);
  const answers = new Map<string, Answer>();
  await until("they are due", async () => {
    const due = await kenri.rows("select from point_reservations where execute_at < now() limit 1");
    return due.length === 1;
  });
  const next = turns.values();
  await Promise.all(Array.from({ length: 16 }, async (_, i) => {
    for (const { id } of next) answers.set(id, await cancel([url, other.url][i % 2] ?? "", id));
  }));
  const rows = await untilAllAre(ownerUrl, ["DONE", "CANCELLED"]);
  for (const { id, status } of rows) {
    const answer = answers.get(id) as Answer;
    if (status === "CANCELLED") assert.equal(answer.status, 200, answer.text);
    else assertError(answer, 409, "RESERVATION_STATE_CONFLICT");
  }
  await assertExclusive(kenri, rows.filter(({ status }) => status === "DONE").length);
});

async function assertExclusive(kenri: Entitlement, done: number): Promise<void> {
  assert.ok(done > 0 && done < 1_000, `${done} of 1,000 were granted`);
  const { ownerUrl } = kenri.database;
  assert.equal((await transactionRows(ownerUrl)).length, done);
  const [{ sum } = { sum: NaN }] = await kenri.rows<{ sum: number }>(
    "select sum(balance)::int from point_root",
  );
  assert.equal(sum, done);
  await assertSums(ownerUrl);
}

Deno.test("a cancel that comes while the worker commits waits for it or is refused, and never wins too", async () => {
  await using kenri = await startEntitlement();
  const { url, database: { ownerUrl } } = kenri;
  const { reservation_id } = (await reserve(url, { execute_at: inMs(2_000) })).json;
  const answer = await whileTableIsLocked(ownerUrl, "point_root", async (release) => {
    await until("the worker is at it", async () => await waitingForLocks(ownerUrl) === 1);
    const cancelling = cancel(url, reservation_id);
    await new Promise((later) => setTimeout(later, 200));
    await release();
    return await cancelling;
  });
  assertError(answer, 409, "RESERVATION_STATE_CONFLICT");
  await untilAllAre(ownerUrl, ["DONE"]);
  assert.equal(await balanceOf(url, "ann"), 10);
});
