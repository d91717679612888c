import { reasonOf } from "./reason.ts";

// Reports a problem once when it begins and once when it ends, however often it occurs. Operations
// that fail for the same cause share one: it ends when all operations that failed have succeeded
// again.
export class Trouble {
  readonly #begins: (reason: string) => void;
  readonly #ends: () => void;
  readonly #failing = new Set<string>();

  constructor(begins: (reason: string) => void, ends: () => void) {
    this.#begins = begins;
    this.#ends = ends;
  }

  fails(what: string, error: unknown): void {
    if (this.#failing.size === 0) this.#begins(reasonOf(error));
    this.#failing.add(what);
  }

  works(what: string): void {
    if (this.#failing.delete(what) && this.#failing.size === 0) this.#ends();
  }
}
