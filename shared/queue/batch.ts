// Natural batching. A caller adds one item and gets a promise of its result, as if it were alone.
// While a flush is under way the next items gather, and are then flushed together: an idle batch
// flushes at once, and under load its flushes grow.

export class BatchFull extends Error {
  override readonly name = "BatchFull";
}

export interface BatchOptions<Item, Result> {
  // Returns the results in the order of the items. If it rejects, every item is rejected.
  flush(items: Item[]): Promise<Result[]>;
  // Items that share a key are never under way at the same time: the later one waits.
  keysOf?(item: Item): readonly string[];
  // Whether a single item may have caused the failure of a flush; then each is tried alone.
  mayBeOneItem?(error: unknown): boolean;
  maxItems: number;
  // How many items must be ready for a flush beside one of many items. Absent: as many as are under way.
  besideMany?: number;
  maxFlushes: number | (() => number); // a function is asked again before each flush
  maxWaiting: number;
  // Under load, the next flush begins up to this long after the one before, so that more items share
  // it. For results that nobody waits for.
  restMs?: number;
}

interface Waiting<Item, Result> {
  item: Item;
  keys: readonly string[];
  resolve(result: Result): void;
  reject(error: unknown): void;
}

const noKeys: readonly string[] = [];

// A flush that waits for a lock must not hold up later items for longer than this.
const gatherMs = 20;

// What each item of a flush beyond many adds to the rest after it. Above 4,000 items per second the
// rests thus grow to their limit, and below they end.
const restPerItemMs = 0.25;
const manyItems = 12;

export class Batch<Item, Result> {
  readonly #options: BatchOptions<Item, Result>;
  readonly #ready: Waiting<Item, Result>[] = [];
  // Key → the items that wait for it. A key in the map is in use.
  readonly #held = new Map<string, Waiting<Item, Result>[]>();
  #waiting = 0;
  #flushes = 0;
  #underWay = 0;
  #scheduled = false;
  #restsUntil = 0; // by performance.now()
  #gathering: ReturnType<typeof setTimeout> | undefined;

  constructor(options: BatchOptions<Item, Result>) {
    this.#options = options;
  }

  // The number of items whose flush has not begun.
  get waiting(): number {
    return this.#waiting;
  }

  // Whether the next item will be refused.
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

  // An item is ready once it has all of its keys; until then it waits for the first one that is in
  // use. It never has some keys while it waits for others, so items can't deadlock.
  #admit(waiting: Waiting<Item, Result>): void {
    for (const key of waiting.keys) {
      const queue = this.#held.get(key);
      if (queue) return void queue.push(waiting);
    }
    for (const key of waiting.keys) this.#held.set(key, []);
    this.#ready.push(waiting);
    this.#schedule();
  }

  #free(keys: readonly string[]): void {
    for (const key of keys) {
      const queue = this.#held.get(key);
      this.#held.delete(key);
      for (const waiting of queue ?? []) this.#admit(waiting);
    }
  }

  // The flush begins at the end of this turn of the event loop, with all items that arrived in it.
  #schedule(): void {
    if (this.#scheduled || !this.#mayFlush) return;
    if (!this.#enough) {
      this.#gathering ??= this.#gather();
      return;
    }
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      while (this.#mayFlush && this.#enough) this.#flushNext();
      this.#schedule();
    });
  }

  #gather(): ReturnType<typeof setTimeout> {
    const restMs = this.#restsUntil - performance.now();
    if (restMs <= 0) return setTimeout(() => this.#flushNext(), gatherMs);
    return setTimeout(() => {
      this.#gathering = undefined;
      this.#schedule();
    }, restMs);
  }

  get #mayFlush(): boolean {
    const { maxFlushes } = this.#options;
    const most = typeof maxFlushes === "number" ? maxFlushes : maxFlushes();
    return this.#ready.length > 0 && this.#flushes < most;
  }

  // With few items a second flush would pay the fixed cost of a flush for these, and the many that
  // come next would wait for it.
  get #enough(): boolean {
    const { maxItems, restMs, besideMany = 0 } = this.#options;
    const ready = this.#ready.length;
    if (restMs !== undefined && performance.now() < this.#restsUntil) return ready >= maxItems / 2;
    const beside = this.#underWay < manyItems ? 0 : besideMany;
    return ready >= Math.min(Math.max(this.#underWay, beside), maxItems);
  }

  #flushNext(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    void this.#flush(this.#ready.splice(0, this.#options.maxItems));
  }

  #rest(items: number): void {
    const { restMs } = this.#options;
    if (restMs === undefined || items < manyItems) return;
    this.#restsUntil = performance.now() + Math.min(restMs, (items - manyItems) * restPerItemMs);
  }

  async #flush(batch: Waiting<Item, Result>[]): Promise<void> {
    this.#flushes++;
    this.#rest(batch.length);
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
      if (results.length !== batch.length) {
        throw new Error("A flush must return a result for every item");
      }
      batch.forEach(({ resolve }, i) => resolve(results[i] as Result));
    } catch (error) {
      if (batch.length > 1 && this.#options.mayBeOneItem?.(error)) await this.#settleEach(batch);
      else for (const { reject } of batch) reject(error);
    }
  }

  // Stops at a failure that no single item causes, because the rest would fail in the same way.
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
