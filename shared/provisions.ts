import type { JetStreamManager } from "nats";
import { StartRefused } from "./errors.ts";
import type { NatsLink, Session } from "./jetstream.ts";
import { NotPermitted } from "./streams.ts";

// Whether the streams and consumers of one loop are as it needs them. A service does not start without
// them. Once they were there and are lost, it waits until they are there again: a restart would bring
// nothing, and entitlement would take no changes meanwhile.
export class Provisions {
  readonly #link: NatsLink;
  readonly #loop: string;
  #metOnce = false;
  #refusedIn: Session | undefined;

  constructor(link: NatsLink, loop: string) {
    this.#link = link;
    this.#loop = loop;
    link.unprovisioned.add(loop);
  }

  // Each refusal is counted and logged, so only the first attempt of a connection may ask for one.
  async ensure<Result>(
    session: Session,
    work: (manager: JetStreamManager, mayMake: boolean) => Promise<Result>,
  ): Promise<Result> {
    try {
      const manager = await session.connection.jetstreamManager();
      const result = await work(manager, session !== this.#refusedIn);
      this.#metOnce = true;
      this.#link.unprovisioned.delete(this.#loop);
      return result;
    } catch (error) {
      if (error instanceof NotPermitted) this.#refusedIn = session;
      if (!(error instanceof StartRefused) || !this.#metOnce) throw error;
      this.#link.unprovisioned.add(this.#loop);
      throw new Error(error.message, { cause: error });
    }
  }
}
