// The run carries all traffic, so when its own process gets no processor time every way stands still.
// That is a fault like any other, only that nobody has planned it: it is measured.

export interface Stall {
  from: number;
  until: number;
}

const everyMs = 100;
/** A machine that is merely busy stays below. */
const stallMs = 500;

export class OwnStalls implements Disposable {
  readonly stalls: Stall[] = [];
  #last = Date.now();
  readonly #timer = setInterval(() => {
    const now = Date.now();
    if (now - this.#last >= everyMs + stallMs) this.stalls.push({ from: this.#last, until: now });
    this.#last = now;
  }, everyMs);

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
