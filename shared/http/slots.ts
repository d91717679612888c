import { unavailable } from "./errors.ts";
import { refusedBy } from "./limits.ts";

// How many requests may be under way at once. Each kind of request has slots of its own, so that
// requests without a credential, or with one that is not checked yet, can't use up the slots of
// known callers. Those of people who arrive to log in have no body, so no stranger can hold them
// with a body that never comes.

type Kind = "anonymous" | "arriving" | "unchecked" | "caller";

export class Slots {
  readonly #limits: Record<Kind, number>;
  readonly #taken: Record<Kind, number> = { anonymous: 0, arriving: 0, unchecked: 0, caller: 0 };

  constructor(requestsAtOnce: number) {
    const [few, many] = [Math.ceil(requestsAtOnce / 50), requestsAtOnce];
    this.#limits = { anonymous: few, arriving: few, unchecked: many, caller: many };
  }

  take(kind: Kind): void {
    if (this.#taken[kind] >= this.#limits[kind]) throw noSlot(kind);
    this.#taken[kind]++;
  }

  release(kind: Kind): void {
    this.#taken[kind]--;
  }
}

function noSlot(kind: Kind): Error {
  return kind === "unchecked" || kind === "caller"
    ? refusedBy("requests_at_once", unavailable("too many requests are under way, try again"))
    : refusedBy(
      kind === "arriving" ? "arrivals_at_once" : "strangers_at_once",
      unavailable("too many come without a credential, try again"),
    );
}

// The slot of one request from the network, until its answer has been sent. A health request needs
// none: if it failed, a process that is only busy might get killed.
export class RequestSlot {
  readonly peer: string; // the address of the other end of the connection
  readonly #slots: Slots;
  #kind: Kind | undefined;

  constructor(slots: Slots, peer: string) {
    this.#slots = slots;
    this.peer = peer;
  }

  get isOfCaller(): boolean {
    return this.#kind === "caller";
  }

  take(kind: Kind): void {
    this.#slots.take(kind);
    this.release();
    this.#kind = kind;
  }

  release(): void {
    if (this.#kind) this.#slots.release(this.#kind);
    this.#kind = undefined;
  }
}
