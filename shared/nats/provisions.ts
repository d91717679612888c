import type { JetStreamManager } from "nats";
import { StartRefused } from "../process/start_refused.ts";
import type { NatsLink, Session } from "./link.ts";
import { gauge } from "../telemetry/metrics.ts";
import { NotPermitted } from "./streams.ts";

const waiting = gauge(
  "kenri_nats_unprovisioned_current",
  "loops that wait because their stream or consumer is missing or has other settings",
);

// Whether the streams and consumers of one loop exist with the wanted settings. A service does not
// start without them, except for loops that a later release has added. If they are lost while it
// runs, the loop waits until they are back: a restart would not help, and would stop everything else
// that the service does.
export class Provisions {
  readonly #link: NatsLink;
  readonly #loop: string;
  #mayWait: boolean;
  #refusedIn: Session | undefined;

  constructor(link: NatsLink, loop: string, mayWait: boolean) {
    this.#link = link;
    this.#loop = loop;
    this.#mayWait = mayWait;
    this.#waits(true);
  }

  #waits(isWaiting: boolean): void {
    const { unprovisioned } = this.#link;
    if (isWaiting) unprovisioned.add(this.#loop);
    else unprovisioned.delete(this.#loop);
    waiting.set(unprovisioned.size);
  }

  // Each refusal is counted and logged, so after the first one a connection does not try again.
  async ensure<Result>(
    session: Session,
    work: (manager: JetStreamManager, mayMake: boolean) => Promise<Result>,
  ): Promise<Result> {
    try {
      const manager = await session.connection.jetstreamManager();
      const result = await work(manager, session !== this.#refusedIn);
      this.#mayWait = true;
      this.#waits(false);
      return result;
    } catch (error) {
      if (error instanceof NotPermitted) this.#refusedIn = session;
      if (!(error instanceof StartRefused) || !this.#mayWait) throw error;
      this.#waits(true);
      throw new Error(error.message, { cause: error });
    }
  }
}
