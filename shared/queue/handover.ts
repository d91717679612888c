import type { Lease } from "./leases.ts";
import { Wakeup } from "../process/signals.ts";

// Between those who write new rows and the worker that waits for them in the same process. While the
// worker keeps up, new rows are written as leased to it and handed over after their commit: they
// need no claim. All others it is called to claim.

export interface NewLease extends Lease {
  token: string;
}

export interface Offer<Row> {
  lease: NewLease;
  take(rows: Row[]): void; // exactly once, also when nothing was written
}

export interface Taker<Row> {
  // For at most so many rows; none when they would have to wait.
  offer(rows: number): Offer<Row> | undefined;
}

export interface Written<Row, Result> {
  result: Result;
  leased: Row[];
  othersWait: boolean;
}

export class Handover<Row> {
  readonly wake = new Wakeup();
  taker: Taker<Row> | undefined; // while it runs

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
