import { unavailable } from "./errors.ts";
import { refusedBy } from "./limits.ts";

// How many requests may be under way at once. Each kind of request has slots of its own, so that
// requests without a credential, or with one that is not checked yet, can't use up the slots of
// known callers. Those of people who arrive to log in have no body, so no stranger can hold them
// with a body that never comes. Nor can requests that wait for a change, which may take a minute, use
// up the slots of others.

const kinds = ["anonymous", "arriving", "unchecked", "caller", "waiting"] as const;
type Kind = typeof kinds[number];

export class Slots {
  readonly #limits: Record<Kind, number>;
  readonly #taken: Record<Kind, number>;

  constructor(requestsAtOnce: number) {
    const few = Math.ceil(requestsAtOnce / 50);
    const limitOf = (kind: Kind) =>
      kind === "anonymous" || kind === "arriving" ? few : requestsAtOnce;
    this.#limits = byKind(limitOf);
    this.#taken = byKind(() => 0);
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
  if (kind !== "anonymous" && kind !== "arriving") {
    return refusedBy("requests_at_once", unavailable("too many requests are under way, try again"));
  }
  return refusedBy(
    kind === "arriving" ? "arrivals_at_once" : "strangers_at_once",
    unavailable("too many come without a credential, try again"),
  );
}

function byKind(of: (kind: Kind) => number): Record<Kind, number> {
  return Object.fromEntries(kinds.map((kind) => [kind, of(kind)])) as Record<Kind, number>;
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
