import type { Claimed, Settlement } from "./job.ts";
import type { InHand } from "./rows_in_hand.ts";

// The rows in hand of each key form a line: they are worked on one after the other, in the order in
// which they joined. A later row of the key may be claimed and join while the line is worked on.
//
// A row that goes back to the table unfinished (retry, released) blocks its line: the rows behind it
// go back, too, and so does each row that joins. A row that failed for good does not block, once
// the table has it.
//
// The end of a block needs care. A claim may read the table while the rows of the line are still
// leased to this worker, return a later row of the key, and be answered after all of the line went
// back. If that row started a new line, it would overtake those that went back. So claims are
// numbered when they begin, and a block lasts
//   - until the table has all rows that went back: a claim that begins then finds them there and
//     returns no later row of the key without them;
//   - and then until each claim that began before has been handled. Its rows of this key go back
//     as well, and the table must have these, too, before the block ends.
// Meanwhile the rows of later claims wait. An offer to take new rows (handover.ts) counts as a claim
// that begins with the offer, because its rows are committed some time after that.
//
// A line that is not blocked is forgotten with its last row. That this row may not be settled yet
// does no harm: it was worked on, and a later row of its key may be.

export interface Finished<Row, Result> {
  held: InHand<Row>;
  settlement: Settlement<Row, Result>;
}

export interface LineOptions<Row, Result> {
  work(held: InHand<Row>): Promise<Settlement<Row, Result>>; // never rejects
  // Called once for each row. Resolves when the table has the settlement; false if the lease was
  // lost before.
  settle(finished: Finished<Row, Result>): Promise<boolean>;
}

interface Block<Row> {
  goingBack: Set<InHand<Row>>; // until the table has them
  lastClaim: number; // the last one that may have read the table before it had all of them
  waiting: InHand<Row>[]; // rows of later claims
}

export class Lines<Row extends Claimed, Result> {
  readonly #options: LineOptions<Row, Result>;
  readonly #lines = new Map<string, InHand<Row>[]>(); // key → the rows behind the one under work
  readonly #blocks = new Map<string, Block<Row>>();
  readonly #claims = new Set<number>(); // under way, in ascending order
  #lastClaim = 0;

  constructor(options: LineOptions<Row, Result>) {
    this.#options = options;
  }

  // The rows behind those under work.
  get waiting(): number {
    return this.#lines.values().reduce((rows, line) => rows + line.length, 0);
  }

  // A claim begins, or an offer. It must end with `join`.
  begin(): number {
    this.#claims.add(++this.#lastClaim);
    return this.#lastClaim;
  }

  // Returns what has to go back at once. The next claim should not begin before the table has these
  // rows: it might find them again, and they would have to go back again.
  join(claim: number, rows: InHand<Row>[]): Promise<unknown>[] {
    const goingBack = rows.flatMap((held) => this.#join(claim, held));
    this.#claims.delete(claim);
    for (const [key, block] of this.#blocks) this.#endBlock(key, block);
    return goingBack;
  }

  // Whether later rows of its key may join the line of this row.
  mayBeJoined({ key }: Row): boolean {
    return key !== null && !this.#blocks.has(key);
  }

  #join(claim: number, held: InHand<Row>): Promise<unknown>[] {
    const { key } = held.row;
    const block = key === null ? undefined : this.#blocks.get(key);
    if (key !== null && block) {
      block.waiting.push(held);
      const comesTooEarly = block.goingBack.size > 0 || claim <= block.lastClaim;
      return comesTooEarly ? this.#giveBack(key, block) : [];
    }
    if (key === null) void this.#workOn(held);
    else if (!this.#lines.get(key)?.push(held)) void this.#workOff(key, [held]);
    return [];
  }

  async #workOn(held: InHand<Row>): Promise<void> {
    void this.#options.settle({ held, settlement: await this.#options.work(held) });
  }

  async #workOff(key: string, line: InHand<Row>[]): Promise<void> {
    this.#lines.set(key, line);
    for (let held = line.shift(); held; held = line.shift()) {
      const settlement = await this.#options.work(held);
      if (settlement.kind === "retry" || settlement.kind === "released") {
        return this.#block(key, line, { held, settlement });
      }
      const settled = this.#options.settle({ held, settlement });
      // If its lease was lost, another worker may still bring it to a good end.
      if (settlement.kind === "failed" && !await settled) return this.#block(key, line);
    }
    this.#lines.delete(key);
  }

  #block(key: string, waiting: InHand<Row>[], first?: Finished<Row, Result>): void {
    this.#lines.delete(key);
    const block = { goingBack: new Set<InHand<Row>>(), lastClaim: this.#lastClaim, waiting };
    this.#blocks.set(key, block);
    this.#giveBack(key, block, first);
    this.#endBlock(key, block);
  }

  #giveBack(
    key: string,
    block: Block<Row>,
    first?: Finished<Row, Result>,
  ): Promise<unknown>[] {
    const rows = block.waiting.splice(0).map((held): Finished<Row, Result> => ({
      held,
      settlement: { row: held.row, kind: "released" },
    }));
    if (first) rows.unshift(first);
    for (const { held } of rows) block.goingBack.add(held);
    return rows.map(async (finished) => {
      await this.#options.settle(finished);
      block.goingBack.delete(finished.held);
      block.lastClaim = this.#lastClaim;
      this.#endBlock(key, block);
    });
  }

  #endBlock(key: string, block: Block<Row>): void {
    const [oldest = Infinity] = this.#claims;
    if (block.goingBack.size > 0 || oldest <= block.lastClaim) return;
    this.#blocks.delete(key);
    if (block.waiting.length > 0) void this.#workOff(key, block.waiting);
  }
}
