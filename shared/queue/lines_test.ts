import assert from "node:assert/strict";
import type { Claimed, Settlement } from "./job.ts";
import { Lines } from "./lines.ts";
import type { InHand } from "./rows_in_hand.ts";
import { turns } from "./worker_testing.ts";

Deno.test("a row that joins is worked on after those before it, and a line without rows is forgotten", async () => {
  const hand = new Hand();
  hand.claims("a1");
  hand.claims("a2", "b1");
  assert.deepEqual(hand.underWay, ["a1", "b1"]);
  await hand.ends("a1", "done");
  assert.deepEqual(hand.underWay, ["b1", "a2"]);
  await hand.ends("a2", "done");
  hand.claims("a3");
  assert.deepEqual(hand.underWay, ["b1", "a3"], "although a1 and a2 are not settled yet");
});

Deno.test("a row that goes back takes the rows behind it along, and each one that joins", async () => {
  for (const kind of ["retry", "released"] as const) {
    const hand = new Hand();
    const late = hand.lines.begin();
    hand.claims("a1", "a2");
    hand.claims("a3");
    await hand.ends("a1", kind);
    hand.joins(late, "a4");
    assert.deepEqual(hand.goingBack, [["a1", kind], ["a2", "released"], ["a3", "released"], [
      "a4",
      "released",
    ]]);
    assert.deepEqual(hand.underWay, []);
    assert.ok(!hand.lines.mayBeJoined(rowOf("a5")));
  }
});

Deno.test("a block lasts until the table has every row that went back", async () => {
  const hand = new Hand();
  hand.claims("a1", "a2");
  await hand.ends("a1", "retry");
  await hand.isSettled("a1");
  hand.claims("a3");
  assert.deepEqual(hand.underWay, []);
  await hand.isSettled("a2");
  assert.ok(!hand.lines.mayBeJoined(rowOf("a4")), "a3 has to be settled, too");
  await hand.isSettled("a3");
  assert.ok(hand.lines.mayBeJoined(rowOf("a4")));
  hand.claims("a1");
  assert.deepEqual(hand.underWay, ["a1"]);
});

Deno.test("rows of a claim that began before the table had what went back go back, too", async () => {
  const hand = new Hand();
  hand.claims("a1");
  const early = hand.lines.begin(); // reads that a1 is leased to this worker
  await hand.ends("a1", "retry");
  await hand.isSettled("a1");
  hand.joins(early, "a2");
  assert.deepEqual(hand.underWay, []);
  const between = hand.lines.begin(); // reads that a2 is leased to this worker
  await hand.isSettled("a2");
  hand.joins(between, "a3");
  assert.deepEqual(hand.underWay, []);
  await hand.isSettled("a3");
  hand.claims("a1", "a2", "a3");
  assert.deepEqual(hand.underWay, ["a1"]);
});

Deno.test("rows of a later claim wait until the earlier ones have been handled", async () => {
  for (const isOvertaken of [false, true]) {
    const hand = new Hand();
    hand.claims("a1");
    const early = hand.lines.begin();
    await hand.ends("a1", "retry");
    await hand.isSettled("a1");
    hand.claims("a1", "a2");
    assert.deepEqual(hand.underWay, [], "the early claim may still bring a3");
    hand.joins(early, ...isOvertaken ? ["a3"] : []);
    assert.deepEqual(hand.underWay, isOvertaken ? [] : ["a1"]);
    const expected = isOvertaken ? ["a1", "a2", "a3"] : [];
    assert.deepEqual(hand.goingBack.map(([id]) => id).sort(), expected);
  }
});

Deno.test("a row that failed for good holds back nothing once it is settled, unless its lease was lost", async () => {
  for (const isOwned of [true, false]) {
    const hand = new Hand();
    hand.claims("a1", "a2");
    await hand.ends("a1", "failed");
    assert.deepEqual(hand.underWay, []);
    await hand.isSettled("a1", isOwned);
    assert.deepEqual(hand.underWay, isOwned ? ["a2"] : []);
    assert.deepEqual(hand.goingBack, isOwned ? [] : [["a2", "released"]]);
  }
});

Deno.test("rows without a key are worked on at once, in no order", async () => {
  const hand = new Hand();
  hand.claims("-1", "-2");
  assert.deepEqual(hand.underWay, ["-1", "-2"]);
  await hand.ends("-1", "retry");
  hand.claims("-3");
  assert.deepEqual(hand.underWay, ["-2", "-3"]);
});

type Kind = Settlement<Claimed, string>["kind"];

/** Rows in lines; the test ends their work and their settlements. */
class Hand {
  readonly #works = new Map<string, (settlement: Settlement<Claimed, string>) => void>();
  readonly #settling = new Map<string, { kind: Kind; settled(isOwned: boolean): void }>();
  readonly lines = new Lines<Claimed, string>({
    work: ({ row }) => new Promise((ends) => this.#works.set(row.id, ends)),
    settle: ({ held, settlement: { kind } }) =>
      new Promise((settled) => this.#settling.set(held.row.id, { kind, settled })),
  });

  claims(...ids: string[]): void {
    this.joins(this.lines.begin(), ...ids);
  }

  joins(claim: number, ...ids: string[]): void {
    this.lines.join(claim, ids.map(heldOf));
  }

  get underWay(): string[] {
    return [...this.#works.keys()];
  }

  /** What goes back to the table, which does not have it yet. */
  get goingBack(): [string, Kind][] {
    const all = [...this.#settling].map(([id, { kind }]): [string, Kind] => [id, kind]);
    return all.filter(([, kind]) => kind === "retry" || kind === "released");
  }

  async ends(id: string, kind: Kind): Promise<void> {
    const end = this.#works.get(id);
    this.#works.delete(id);
    end?.({ kind, row: rowOf(id) } as Settlement<Claimed, string>);
    await turns(1);
  }

  async isSettled(id: string, isOwned = true): Promise<void> {
    const settling = this.#settling.get(id);
    this.#settling.delete(id);
    settling?.settled(isOwned);
    await turns(1);
  }
}

function heldOf(id: string): InHand<Claimed> {
  return { row: rowOf(id), leasedUntil: Infinity, lost: false };
}

function rowOf(id: string): Claimed {
  const key = id.startsWith("-") ? null : id.slice(0, 1);
  return { id, key, token: "t", attempts: 0, takenOver: false };
}
