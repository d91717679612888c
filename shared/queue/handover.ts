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

export class Handover<Row> {
  readonly wake: Wakeup;
  taker: Taker<Row> | undefined; // the worker, while it runs

  constructor(wake = new Wakeup()) {
    this.wake = wake;
  }

  async write<Result>(
    rows: number,
    commit: (lease: NewLease | undefined) => Promise<Written<Row, Result>>,
  ): Promise<Result> {
    const offer = this.taker?.offer(rows);
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
