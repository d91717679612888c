// Natural batching. A caller hands over one item and gets a promise of its result, as if it were
// alone. While a flush is under way the next items gather, and then go together in one call: an idle
// batch flushes at once, a busy one grows with its load.

export class BatchFull extends Error {
  override readonly name = "BatchFull";
}

export interface BatchOptions<Item, Result> {
  // Results come in the order of the items. A rejection is the rejection of every item.
  flush(items: Item[]): Promise<Result[]>;
  // Items that share a key are never under way at the same time: the later one waits.
  keysOf?(item: Item): readonly string[];
  // Whether one item may be to blame for a failed flush; then each is tried alone.
  mayBeOneItem?(error: unknown): boolean;
  maxItems: number;
  maxFlushes: number;
  maxWaiting: number;
}

interface Waiting<Item, Result> {
  item: Item;
  keys: readonly string[];
  resolve(result: Result): void;
  reject(error: unknown): void;
}

const noKeys: readonly string[] = [];

// A flush that waits for a lock must not hold up those that came after it.
const gatherMs = 5;

export class Batch<Item, Result> {
  readonly #options: BatchOptions<Item, Result>;
  readonly #ready: Waiting<Item, Result>[] = [];
  // Key → those who wait for it. A key that is present is taken.
  readonly #held = new Map<string, Waiting<Item, Result>[]>();
  #waiting = 0;
  #flushes = 0;
  #underWay = 0;
  #scheduled = false;
  #gathering: ReturnType<typeof setTimeout> | undefined;

  constructor(options: BatchOptions<Item, Result>) {
    this.#options = options;
  }

  // Items handed over whose flush has not begun.
  get waiting(): number {
    return this.#waiting;
  }

  // The next one will be refused.
  get full(): boolean {
    return this.#waiting >= this.#options.maxWaiting;
  }

  add(item: Item): Promise<Result> {
    if (this.full) {
      return Promise.reject(new BatchFull(`${this.#waiting} are waiting already`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#waiting++;
    this.#admit({ item, keys: this.#options.keysOf?.(item) ?? noKeys, resolve, reject });
    return promise;
  }

  // An item is ready once it holds all of its keys, and until then waits in line for the first
  // one that is taken. It never holds some keys while it waits for others, so no ring can form.
  #admit(waiting: Waiting<Item, Result>): void {
    for (const key of waiting.keys) {
      const line = this.#held.get(key);
      if (line) return void line.push(waiting);
    }
    for (const key of waiting.keys) this.#held.set(key, []);
    this.#ready.push(waiting);
    this.#schedule();
  }

  #free(keys: readonly string[]): void {
    for (const key of keys) {
      const line = this.#held.get(key);
      this.#held.delete(key);
      for (const waiting of line ?? []) this.#admit(waiting);
    }
  }

  // Flushing waits for the end of this turn, so that all that arrived in it goes together.
  #schedule(): void {
    if (this.#scheduled || !this.#mayFlush) return;
    if (!this.#enough) {
      this.#gathering ??= setTimeout(() => this.#flushNext(), gatherMs);
      return;
    }
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      while (this.#mayFlush && this.#enough) this.#flushNext();
      this.#schedule();
    });
  }

  get #mayFlush(): boolean {
    return this.#ready.length > 0 && this.#flushes < this.#options.maxFlushes;
  }

  // Beside another a flush begins with as many as are under way. With fewer it would pay for a few
  // what is paid once for all, and the many that come next would wait for it.
  get #enough(): boolean {
    return this.#ready.length >= Math.min(this.#underWay, this.#options.maxItems);
  }

  #flushNext(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    void this.#flush(this.#ready.splice(0, this.#options.maxItems));
  }

  async #flush(batch: Waiting<Item, Result>[]): Promise<void> {
    this.#flushes++;
    this.#waiting -= batch.length;
    this.#underWay += batch.length;
    try {
      await this.#settle(batch);
    } finally {
      this.#flushes--;
      this.#underWay -= batch.length;
      for (const { keys } of batch) this.#free(keys);
      this.#schedule();
    }
  }

  async #settle(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#options.flush(batch.map(({ item }) => item));
      if (results.length !== batch.length) throw new Error("A flush must answer every item");
      batch.forEach(({ resolve }, i) => resolve(results[i] as Result));
    } catch (error) {
      if (batch.length > 1 && this.#options.mayBeOneItem?.(error)) await this.#settleEach(batch);
      else for (const { reject } of batch) reject(error);
    }
  }

  // One by one, up to a failure that no item is to blame for: the rest would only wait to meet it.
  async #settleEach(batch: Waiting<Item, Result>[]): Promise<void> {
    let unavailable: unknown;
    for (const { item, resolve, reject } of batch) {
      try {
        if (unavailable) throw unavailable;
        const [result] = await this.#options.flush([item]);
        resolve(result as Result);
      } catch (error) {
        reject(error);
        if (!this.#options.mayBeOneItem?.(error)) unavailable = error;
      }
    }
  }
}
