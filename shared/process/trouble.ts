import { reasonOf } from "./reason.ts";

// Tells of a trouble once when it begins and once when it has ended, however often it was met. What
// shares a cause shares a trouble: it ends when everything that failed has worked again.
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
