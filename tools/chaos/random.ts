/** Random numbers that are the same for the same seed (the generator is sfc32). */
export class Random {
  #state: [number, number, number, number];

  constructor(seed: number) {
    this.#state = [seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0, 0x9e3779b9, 1];
    for (let i = 0; i < 15; i++) this.next(); // until the results of similar seeds differ
  }

  /** A number from 0 up to, not including, 1. */
  next(): number {
    let [a, b, c, d] = this.#state;
    const t = (a + b + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + t | 0;
    this.#state = [a, b, c, d];
    return (t >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.int(0, items.length - 1)] as Item;
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    const left = [...items];
    return items.map(() => left.splice(this.int(0, left.length - 1), 1)[0] as Item);
  }
}
