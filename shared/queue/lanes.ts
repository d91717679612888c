import { maxTimerMs } from "../process/setting_kinds.ts";
import { pause } from "../process/signals.ts";

// The destinations of the rows in hand. Of each lane only some rows are worked on at once; the
// others wait in memory for their turn, and rows of other lanes pass them. So that few wait, a lane
// with many rows in hand counts as full, and claims leave out the lanes that are full or paused.
// When such a lane opens, `opened` is called, so that its rows are claimed at once.

interface Lane {
  inHand: number; // rows that joined and whose work has not ended
  underWay: number;
  waiting: ((mayBegin: boolean) => void)[];
  isLeftOut: boolean; // it was full at the last claim
}

// A lane is full with so many times the rows that it works on at once. It opens with half of them,
// so that it does not run out of rows during the next claim.
const timesInHand = 4;

export class Lanes {
  readonly #options: { atOnce?(lane: string): number };
  readonly #opened: () => void;
  readonly #lanes = new Map<string, Lane>();
  readonly #pausedUntil = new Map<string, number>(); // by performance.now()
  readonly #ended = new AbortController();
  #waiting = 0;

  constructor(options: { atOnce?(lane: string): number }, opened: () => void) {
    this.#options = options;
    this.#opened = opened;
  }

  // The rows that may begin only when others of their lane have ended.
  get waiting(): number {
    return this.#waiting;
  }

  // The lanes whose rows are not to be claimed now.
  leftOut(): string[] {
    for (const [name, lane] of this.#lanes) {
      lane.isLeftOut = lane.inHand >= timesInHand * this.#atOnce(name);
    }
    const full = [...this.#lanes].filter(([, { isLeftOut }]) => isLeftOut);
    return [...new Set([...this.#pausedUntil.keys(), ...full.map(([name]) => name)])];
  }

  // A row is in hand now. Each `join` is followed by one `leave`, when the row needs no more work.
  join(name: string | undefined): void {
    if (name === undefined) return;
    const lane = this.#lanes.get(name) ??
      { inHand: 0, underWay: 0, waiting: [], isLeftOut: false };
    lane.inHand++;
    this.#lanes.set(name, lane);
  }

  leave(name: string | undefined): void {
    const lane = name === undefined ? undefined : this.#lanes.get(name);
    if (name === undefined || !lane) return;
    lane.inHand--;
    if (lane.inHand === 0) this.#lanes.delete(name);
    if (!lane.isLeftOut || lane.inHand > timesInHand / 2 * this.#atOnce(name)) return;
    lane.isLeftOut = false;
    this.#opened();
  }

  // Waits until the row may be worked on; false if its lane is paused. After true, `end` must follow.
  async begin(name: string): Promise<boolean> {
    const lane = this.#lanes.get(name);
    if (this.#pausedUntil.has(name) || !lane) return false;
    if (lane.underWay >= this.#atOnce(name)) {
      this.#waiting++;
      const mayBegin = await new Promise<boolean>((begin) => lane.waiting.push(begin));
      this.#waiting--;
      return mayBegin; // its place was passed on by `end`
    }
    lane.underWay++;
    return true;
  }

  end(name: string): void {
    const lane = this.#lanes.get(name);
    const next = lane?.waiting.shift();
    if (next) next(true);
    else if (lane) lane.underWay--;
  }

  // Rows that wait don't begin, and none is claimed, until the time is over. Of several pauses the
  // one that ends last counts.
  async pause(name: string, ms: number): Promise<void> {
    const until = performance.now() + ms;
    if (until <= (this.#pausedUntil.get(name) ?? 0)) return;
    this.#pausedUntil.set(name, until);
    for (const begin of this.#lanes.get(name)?.waiting.splice(0) ?? []) begin(false);
    await pause(Math.min(ms, maxTimerMs), this.#ended.signal);
    if (this.#pausedUntil.get(name) !== until) return;
    this.#pausedUntil.delete(name);
    this.#opened();
  }

  // Ends the timers of paused lanes.
  close(): void {
    this.#ended.abort();
  }

  #atOnce(name: string): number {
    return this.#options.atOnce?.(name) ?? Infinity;
  }
}
