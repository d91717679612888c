import { pause } from "../process/signals.ts";
import type { Trouble } from "../process/trouble.ts";
import type { InHand, RowsInHand } from "./rows_in_hand.ts";

// Keeps the leases of the rows in hand.
export class Heartbeat<Row extends { id: string; token: string }> {
  readonly #held: RowsInHand<Row>;
  readonly #times: { leaseMs: number; pollIntervalMs: number };
  readonly #table: Trouble;

  constructor(
    held: RowsInHand<Row>,
    times: { leaseMs: number; pollIntervalMs: number },
    table: Trouble,
  ) {
    this.#held = held;
    this.#times = times;
    this.#table = table;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#times.leaseMs / 3, signal);
      await this.#renew();
    }
  }

  // A lease that has run out in hand has to be renewed before the row is worked on. False if another
  // worker has taken the row over meanwhile.
  async isLeasedAgain(held: InHand<Row>, abandon: AbortSignal): Promise<boolean> {
    while (this.#held.ranOut(held) && !abandon.aborted) {
      if (!await this.#renew()) await pause(this.#times.pollIntervalMs, abandon);
    }
    return this.#held.owns(held) && !abandon.aborted;
  }

  async #renew(): Promise<boolean> {
    try {
      await this.#held.renew();
      this.#table.works("heartbeat");
      return true;
    } catch (error) {
      this.#table.fails("heartbeat", error);
      return false;
    }
  }
}
