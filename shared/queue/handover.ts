import type { Lease } from "./leased_row.ts";
import { Wakeup } from "../process/signals.ts";

// The way from the code that writes new rows to the worker of the same process. While the worker
// keeps up, new rows are written as leased to it and handed over after their commit, so they need
// no claim. For all other new rows the worker is woken to claim them.

export interface NewLease extends Lease {
  token: string;
}

export interface Offer<Row> {
  lease: NewLease;
  take(rows: Row[]): void; // called exactly once, even if nothing was written
}

export interface Taker<Row> {
  // A lease for at most this many rows; undefined if they would have to wait.
  offer(rows: number): Offer<Row> | undefined;
}

export interface Written<Row, Result> {
  result: Result;
  leased: Row[];
  othersWait: boolean;
}

const never = new AbortController().signal;

type Commit<Row, Result> = (lease: NewLease | undefined) => Promise<Written<Row, Result>>;

export class Handover<Row> {
  readonly wake: Wakeup;
  readonly mayOffer = new Wakeup(); // triggered by the worker
  taker: Taker<Row> | undefined; // the worker, while it runs
  #lastOffer: Promise<unknown> = Promise.resolve();

  constructor(wake = new Wakeup()) {
    this.wake = wake;
  }

  write<Result>(rows: number, commit: Commit<Row, Result>): Promise<Result> {
    return this.#write(this.taker?.offer(rows), commit);
  }

  // For a writer whom nobody waits for. To claim a row costs more than to write it, so rows are better
  // written a little later, when the worker can take them.
  async writeWithin<Result>(
    ms: number,
    rows: number,
    commit: Commit<Row, Result>,
  ): Promise<Result> {
    const offered = this.#lastOffer.then(() => this.#offerWithin(ms, rows));
    this.#lastOffer = offered;
    return await this.#write(await offered, commit);
  }

  // One writer waits at a time.
  async #offerWithin(ms: number, rows: number): Promise<Offer<Row> | undefined> {
    const until = performance.now() + ms;
    for (;;) {
      const offer = this.taker?.offer(rows);
      const leftMs = until - performance.now();
      if (offer || !this.taker || leftMs <= 0) return offer;
      await this.mayOffer.wait(leftMs, never);
    }
  }

  async #write<Result>(
    offer: Offer<Row> | undefined,
    commit: Commit<Row, Result>,
  ): Promise<Result> {
    let leased: Row[] = [];
    try {
      const written = await commit(offer?.lease);
      leased = written.leased;
      if (written.othersWait) this.wake.trigger();
      return written.result;
    } finally {
      offer?.take(leased);
    }
  }
}
