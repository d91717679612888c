// Limits of time that need not be exact. They share one timer, because a timer for each costs as much as
// a twentieth of a small request. It runs as long as the process, and does not keep it from ending.

export interface Deadline {
  at: number; // by performance.now()
  miss(): void;
}

const lookMs = 250;

export class Deadlines {
  readonly #ms: number;
  readonly #open = new Set<Deadline>(); // the earliest is first

  constructor(ms: number) {
    this.#ms = ms;
    Deno.unrefTimer(setInterval(() => this.#look(), lookMs));
  }

  // Calls `miss` if the deadline has not been met by then.
  begin(miss: () => void): Deadline {
    const deadline = { at: performance.now() + this.#ms, miss };
    this.#open.add(deadline);
    return deadline;
  }

  meet(deadline: Deadline): void {
    this.#open.delete(deadline);
  }

  // Ends like the work, or with the error if that takes too long.
  within<Result>(work: Promise<Result>, tooLate: () => Error): Promise<Result> {
    return new Promise((resolve, reject) => {
      const deadline = this.begin(() => reject(tooLate()));
      work.then((result) => {
        this.meet(deadline);
        resolve(result);
      }, (error) => {
        this.meet(deadline);
        reject(error);
      });
    });
  }

  #look(): void {
    const now = performance.now();
    for (const deadline of this.#open) {
      if (deadline.at > now) return;
      this.#open.delete(deadline);
      deadline.miss();
    }
  }
}
