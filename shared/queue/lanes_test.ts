import assert from "node:assert/strict";
import { Lanes } from "./lanes.ts";
import { turns } from "./worker_testing.ts";

Deno.test("so many rows of a lane are under way at once, the others follow in their order", async () => {
  const rows = new Rows(2);
  rows.join("a", "1", "2", "3", "4");
  rows.join("b", "5");
  await turns(1);
  assert.deepEqual(rows.begun, ["1", "2", "5"]);
  assert.equal(rows.lanes.waiting, 2);
  await rows.end("a");
  assert.deepEqual(rows.begun.slice(3), ["3"]);
  await rows.end("a");
  await rows.end("a");
  assert.deepEqual(rows.begun.slice(3), ["3", "4"]);
  assert.equal(rows.lanes.waiting, 0);
});

Deno.test("a lane with four times the rows that it works on at once is left out, until it has half of them", async () => {
  const rows = new Rows(1);
  rows.join("a", "1", "2", "3");
  assert.deepEqual(rows.lanes.leftOut(), []);
  rows.join("a", "4");
  assert.deepEqual(rows.lanes.leftOut(), ["a"]);
  await rows.end("a");
  assert.equal(rows.opened, 0);
  await rows.end("a");
  assert.equal(rows.opened, 1);
  assert.deepEqual(rows.lanes.leftOut(), []);
  await rows.end("a");
  assert.equal(rows.opened, 1, "it was not left out");
});

Deno.test("a paused lane begins nothing and is left out, until its longest pause is over", async () => {
  const rows = new Rows(1);
  rows.join("a", "1", "2");
  await turns(1);
  const from = performance.now();
  const [first, longest, last] = [10, 1_000, 10].map((ms) => rows.lanes.pause("a", ms));
  await rows.end("a");
  rows.join("a", "3");
  rows.join("b", "4");
  await turns(1);
  assert.deepEqual(rows.begun, ["1", "4"]);
  assert.deepEqual(rows.refused, ["2", "3"]);
  await Promise.all([first, last]);
  assert.deepEqual(rows.lanes.leftOut(), ["a"]);
  await longest;
  assert.ok(performance.now() - from > 990);
  assert.equal(rows.opened, 1);
  assert.deepEqual(rows.lanes.leftOut(), []);
  rows.join("a", "5");
  await turns(1);
  assert.deepEqual(rows.begun, ["1", "4", "5"]);
});

Deno.test("a lane without a limit can be paused, and is never full", async () => {
  const rows = new Rows(undefined);
  rows.join("a", ...Array.from({ length: 100 }, (_, i) => `${i}`));
  await turns(1);
  assert.equal(rows.begun.length, 100);
  assert.deepEqual(rows.lanes.leftOut(), []);
  const paused = rows.lanes.pause("a", 60_000);
  assert.deepEqual(rows.lanes.leftOut(), ["a"]);
  rows.lanes.close();
  await paused;
});

class Rows {
  readonly lanes: Lanes;
  readonly begun: string[] = [];
  readonly refused: string[] = [];
  opened = 0;

  constructor(atOnce: number | undefined) {
    this.lanes = new Lanes(atOnce ? { atOnce: () => atOnce } : {}, () => this.opened++);
  }

  join(lane: string, ...ids: string[]): void {
    for (const id of ids) {
      this.lanes.join(lane);
      void this.lanes.begin(lane).then((mayBegin) => {
        (mayBegin ? this.begun : this.refused).push(id);
        if (!mayBegin) this.lanes.leave(lane);
      });
    }
  }

  /** The work on one row ends. */
  async end(lane: string): Promise<void> {
    this.lanes.end(lane);
    this.lanes.leave(lane);
    await turns(1);
  }
}
