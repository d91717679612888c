import assert from "node:assert/strict";
import { RowsInHand } from "./rows_in_hand.ts";

interface Row {
  id: string;
  token: string;
}

Deno.test("a row that was lost and claimed again counts as another one", () => {
  const hand = new RowsInHand<Row>({ leaseMs: 60_000, extend: keepAll });
  const [before] = hand.add([{ id: "1", token: "old" }], performance.now());
  const [again] = hand.add([{ id: "1", token: "new" }], performance.now());
  assert.ok(before && again);
  assert.deepEqual([hand.has(before), hand.owns(before), hand.isLeased(before)], [
    false,
    false,
    false,
  ]);
  hand.drop(before); // the old outcome is settled, and found its lease gone
  assert.ok(hand.has(again));
  assert.equal(hand.size, 1);
  assert.deepEqual(hand.dropAll(), [{ id: "1", token: "new" }]);
});

Deno.test("a renewal keeps what is still leased and marks the rest as lost", async () => {
  let asked: string[] = [];
  const hand = new RowsInHand<Row>({
    leaseMs: 50,
    extend: (rows) => {
      asked = rows.map(({ id }) => id);
      return Promise.resolve(new Set(["kept"]));
    },
  });
  const longAgo = performance.now() - 60;
  const [kept, stolen] = hand.add(
    [{ id: "kept", token: "a" }, { id: "stolen", token: "b" }],
    longAgo,
  );
  assert.ok(kept && stolen);
  assert.ok(hand.anyRanOut);
  assert.deepEqual([hand.ranOut(kept), hand.isLeased(kept)], [true, false]);
  await hand.renew();
  assert.deepEqual(asked, ["kept", "stolen"]);
  assert.deepEqual([hand.ranOut(kept), hand.isLeased(kept)], [false, true]);
  assert.deepEqual([hand.owns(stolen), hand.ranOut(stolen)], [false, false]);
  assert.equal(hand.size, 2, "it stays in hand until its outcome is settled");
});

Deno.test("a renewed lease counts from before the renewal", async () => {
  const answered = Promise.withResolvers<void>();
  const hand = new RowsInHand<Row>({
    leaseMs: 30,
    extend: async (rows) => {
      await answered.promise;
      return await keepAll(rows);
    },
  });
  const [held] = hand.add([{ id: "1", token: "a" }], performance.now());
  assert.ok(held);
  const renewed = hand.renew();
  await new Promise((over) => setTimeout(over, 40));
  answered.resolve();
  await renewed;
  assert.ok(hand.ranOut(held), "the table counts from when it was asked, or earlier");
});

Deno.test("a call while a renewal is under way gets the result of that one", async () => {
  let calls = 0;
  const answered = Promise.withResolvers<void>();
  const hand = new RowsInHand<Row>({
    leaseMs: 50,
    extend: async (rows) => {
      calls++;
      await answered.promise;
      return await keepAll(rows);
    },
  });
  hand.add([{ id: "1", token: "a" }], performance.now());
  const both = [hand.renew(), hand.renew()];
  answered.resolve();
  await Promise.all(both);
  assert.equal(calls, 1);
  await hand.renew();
  assert.equal(calls, 2);
});

function keepAll(rows: Row[]): Promise<Set<string>> {
  return Promise.resolve(new Set(rows.map(({ id }) => id)));
}
