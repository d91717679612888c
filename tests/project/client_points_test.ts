// The TypeScript client's methods for points and reservations against the real service.
import assert from "node:assert/strict";
import {
  type ChangeReservation,
  Conflict,
  kenriClient,
  type NewChangeReservation,
  type NewPointsReservation,
  type PointsChange,
  type PointsReservation,
  Refused,
} from "../../client/client.ts";
import { type Entitlement, startEntitlement } from "../support/entitlement.ts";
import { openDoor } from "./door.ts";
import { until } from "../../tools/servers/wait.ts";

let kenri: Entitlement;
const mostPoints = 1_000;

Deno.test.beforeAll(async () => {
  kenri = await startEntitlement({ ENTITLEMENT_POINTS_MAX_BALANCE: `${mostPoints}` });
});
Deno.test.afterAll(() => kenri.close());

const newUser = () => `user/${crypto.randomUUID()}`;
const newKey = () => crypto.randomUUID();
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const anHour = 3_600_000;

const change = (fields: Partial<PointsChange> = {}): PointsChange => ({
  user_id: newUser(),
  point_amount: 100,
  reason: "purchase",
  source_id: "p-1",
  ...fields,
});
const reserved = (fields: Partial<NewPointsReservation> = {}): NewPointsReservation => ({
  user_id: newUser(),
  point_amount: 100,
  execute_at: inMs(anHour),
  ...fields,
});
const right = (fields: Partial<NewChangeReservation> = {}): NewChangeReservation => ({
  action: "GRANT",
  user_id: newUser(),
  stock_keeping_unit: "book",
  reason: "purchase",
  purchase_id: "p-1",
  execute_at: inMs(anHour),
  ...fields,
});

async function refusalOf(call: Promise<unknown>): Promise<Conflict | Refused> {
  const error = await call.then(() => assert.fail("it was not refused"), (error) => error);
  assert.ok(error instanceof Conflict || error instanceof Refused, String(error));
  return error;
}

async function whenDone<Kind extends PointsReservation | ChangeReservation>(
  find: () => Promise<Kind>,
): Promise<Kind> {
  let found: Kind | undefined;
  await until("it is done", async () => (found = await find()).status === "DONE");
  return found ?? assert.fail();
}

Deno.test("a grant and a spend return transaction and balance, and a repetition is replayed", async () => {
  const client = kenriClient(kenri.url);
  const user_id = newUser();
  const key = newKey();
  const granted = await client.grantPoints(key, change({ user_id }), { traceId: "order-17" });
  const { transaction_id, created_at, ...transaction } = granted.transaction;
  const origin = { reason: "purchase", source_id: "p-1", unit: "points" };
  const expected = { ...origin, kind: "GRANT", point_amount: 100, balance_after: 100, version: 1 };
  assert.deepEqual(transaction, expected);
  assert.deepEqual([granted.balance, granted.replayed, granted.traceId], [100, false, "order-17"]);

  const again = await client.grantPoints(key, change({ user_id }));
  assert.deepEqual([again.transaction, again.balance, again.replayed], [
    ...[{ transaction_id, created_at, ...transaction }, 100, true],
  ]);
  const { transaction: spent, balance } = await client.spendPoints(
    newKey(),
    change({ user_id, point_amount: 30 }),
  );
  assert.deepEqual([spent.kind, spent.point_amount, spent.version, balance], ["SPEND", -30, 2, 70]);
});

Deno.test("points that are not there, or beyond the limit, are a Conflict, also when it is replayed", async () => {
  const client = kenriClient(kenri.url);
  const user_id = newUser();
  const keys = [newKey(), newKey()] as const;
  for (const replayed of [false, true]) {
    const calls = [
      client.spendPoints(keys[0], change({ user_id, point_amount: 1 })),
      client.grantPoints(keys[1], change({ user_id, point_amount: mostPoints + 1 })),
    ];
    const refusals = await Promise.all(calls.map(refusalOf));
    assert.deepEqual(refusals.map((error) => error instanceof Conflict && error.replayed), [
      ...[replayed, replayed],
    ]);
    assert.deepEqual(refusals.map(({ code }) => code), [
      ...["INSUFFICIENT_POINTS", "POINTS_LIMIT_REACHED"],
    ]);
  }
  const bad = await refusalOf(client.grantPoints(newKey(), change({ user_id, point_amount: 0.5 })));
  assert.equal(bad.code, "BAD_REQUEST");
  assert.match(bad.message, /^point_amount must be a whole number/);
  assert.deepEqual(await client.listBalances(user_id), { user_id, balances: [] });
});

Deno.test("the answer to a spend that was lost is returned to the repetition, and no more is taken", async () => {
  await using door = openDoor(kenri.url);
  const user_id = newUser();
  await kenriClient(kenri.url).grantPoints(newKey(), change({ user_id }));
  door.loseNextAnswer(() => Promise.resolve());
  const client = kenriClient(door.url);
  const { balance, replayed } = await client.spendPoints(newKey(), change({ user_id }));
  assert.deepEqual([balance, replayed], [0, true]);
});

Deno.test("balances and transactions are listed, by unit and in pages", async () => {
  const client = kenriClient(kenri.url);
  const user_id = newUser();
  for (const unit of ["gems", "gold", "gems", "gems"]) {
    await client.grantPoints(newKey(), change({ user_id, unit, point_amount: 5 }));
  }
  const { balances } = await client.listBalances(user_id);
  assert.deepEqual(balances.map(({ unit, balance, version }) => [unit, balance, version]), [
    ...[["gems", 15, 3], ["gold", 5, 1]],
  ]);
  const { balances: [gold, ...more] } = await client.listBalances(user_id, { unit: "gold" });
  assert.deepEqual([gold?.balance, more], [5, []]);

  const first = await client.listTransactions(user_id, { limit: 3 });
  const second = await client.listTransactions(user_id, { limit: 3, cursor: first.next_cursor });
  const units = [first, second].map(({ transactions }) => transactions.map(({ unit }) => unit));
  assert.deepEqual(units, [["gems", "gems", "gold"], ["gems"]]);
  assert.equal(second.next_cursor, undefined);
  const gems = await client.listTransactions(user_id, { unit: "gems" });
  assert.deepEqual(gems.transactions.map(({ balance_after }) => balance_after), [15, 10, 5]);
});

Deno.test("a reservation is accepted once, also if its time is written in another way", async () => {
  const client = kenriClient(kenri.url);
  const key = newKey();
  const at = inMs(anHour);
  const fields = reserved({ execute_at: at });
  const { reservation, replayed } = await client.reservePoints(key, fields);
  const { reservation_id, created_at: _, ...rest } = reservation;
  const { user_id, point_amount } = fields;
  const execute_at = at.replace("Z", "000Z");
  const expected = { user_id, unit: "points", point_amount, execute_at, status: "PENDING" };
  assert.deepEqual([rest, replayed], [expected, false]);

  const spelled = `${new Date(Date.parse(at) + 2 * anHour).toISOString().slice(0, -1)}+02:00`;
  const again = await client.reservePoints(key, { ...fields, execute_at: spelled });
  assert.deepEqual([again.reservation, again.replayed], [reservation, true]);
  assert.deepEqual(await client.findReservation(reservation_id), reservation);
  const { code } = await refusalOf(
    client.reservePoints(key, { ...fields, execute_at: inMs(2 * anHour) }),
  );
  assert.equal(code, "IDEMPOTENCY_KEY_CONFLICT");
});

Deno.test("a reservation that is due is done, and its transaction names it", async () => {
  const client = kenriClient(kenri.url);
  const fields = reserved({ execute_at: inMs(300), reason: "birthday" });
  const { reservation: { reservation_id } } = await client.reservePoints(newKey(), fields);
  const done = await whenDone(() => client.findReservation(reservation_id));
  const { transactions: [transaction] } = await client.listTransactions(fields.user_id);
  assert.ok(transaction && done.done_at && done.done_at >= done.execute_at);
  assert.deepEqual([transaction.transaction_id, transaction.reservation_id], [
    ...[done.transaction_id, reservation_id],
  ]);
  assert.deepEqual([transaction.reason, transaction.source_id], ["birthday", reservation_id]);
  assert.deepEqual([done.attempt_count, done.last_error], [0, null]);

  const late = await refusalOf(client.cancelReservation(reservation_id));
  assert.ok(late instanceof Conflict);
  assert.deepEqual([late.code, late.message], ["RESERVATION_STATE_CONFLICT", "already DONE"]);
});

Deno.test("a cancelled reservation stays cancelled, and reservations are listed by their status", async () => {
  const client = kenriClient(kenri.url);
  const user_id = newUser();
  const made: PointsReservation[] = [];
  for (const hours of [3, 1, 2]) {
    const fields = reserved({ user_id, execute_at: inMs(hours * anHour) });
    made.push((await client.reservePoints(newKey(), fields)).reservation);
  }
  const [third = "", first = "", second = ""] = made.map(({ reservation_id }) => reservation_id);
  const cancelled = await client.cancelReservation(second);
  assert.equal(cancelled.status, "CANCELLED");
  assert.deepEqual(await client.cancelReservation(second), cancelled);

  const page = await client.listReservations(user_id, { limit: 2 });
  const rest = await client.listReservations(user_id, { limit: 2, cursor: page.next_cursor });
  const ids = [page, rest].map(({ reservations }) => reservations.map((row) => row.reservation_id));
  assert.deepEqual([ids, rest.next_cursor], [[[first, second], [third]], undefined]);
  const { reservations } = await client.listReservations(user_id, { status: "CANCELLED" });
  assert.deepEqual(reservations, [cancelled]);
});

Deno.test("an unknown reservation is a refusal, whatever the id looks like", async () => {
  const client = kenriClient(kenri.url);
  const { reservation } = await client.reserveChange(newKey(), right());
  // The last one is a reservation, but not one of points.
  for (const id of [crypto.randomUUID(), "x", "../grants", "a/b", reservation.reservation_id]) {
    const calls = [client.findReservation(id), client.cancelReservation(id)];
    const refusals = await Promise.all(calls.map(refusalOf));
    assert.deepEqual(refusals.map(({ code }) => code), ["NOT_FOUND", "NOT_FOUND"], id);
  }
});

Deno.test("a right that is due is granted, and a refusal is its outcome", async () => {
  const client = kenriClient(kenri.url);
  const fields = right({ execute_at: inMs(300) });
  const { user_id } = fields;
  const { reservation } = await client.reserveChange(newKey(), fields);
  const again = await client.reserveChange(newKey(), fields);
  assert.deepEqual([reservation.action, reservation.status], ["GRANT", "PENDING"]);
  const outcomes = [];
  for (const { reservation_id } of [reservation, again.reservation]) {
    const { outcome } = await whenDone(() => client.findReservedChange(reservation_id));
    outcomes.push(outcome);
  }
  const { entitlements: [granted] } = await client.list(user_id);
  const refused = { code: "ENTITLEMENT_STATE_CONFLICT", message: "already ACTIVE" };
  assert.deepEqual(outcomes, [
    { status: 200, body: { user_id, ...granted } },
    { status: 409, body: refused },
  ]);
});

Deno.test("the reservation of a right can be cancelled", async () => {
  const client = kenriClient(kenri.url);
  const { reservation } = await client.reserveChange(newKey(), right({ action: "REVOKE" }));
  const { status } = await client.cancelReservedChange(reservation.reservation_id);
  assert.equal(status, "CANCELLED");
});
