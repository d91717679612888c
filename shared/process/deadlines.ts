// Limits of time that need not be exact. They share one timer, because a timer for each costs as much as
// a twentieth of a small request.

export interface Deadline {
  at: number; // by performance.now()
  miss(): void;
}

const lookMs = 250;

export class Deadlines {
  readonly #ms: number;
  readonly #open = new Set<Deadline>(); // the earliest is first
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(ms: number) {
    this.#ms = ms;
  }

  // Calls `miss` if the deadline has not been met by then.
  begin(miss: () => void): Deadline {
    const deadline = { at: performance.now() + this.#ms, miss };
    this.#open.add(deadline);
    this.#timer ??= setInterval(() => this.#look(), lookMs);
    return deadline;
  }

  meet(deadline: Deadline): void {
    this.#open.delete(deadline);
  }

  // The timer ends when it finds nothing to do. To end it with each last deadline would mean to make a new
  // one for nearly every request.
  #look(): void {
    const now = performance.now();
    for (const deadline of this.#open) {
      if (deadline.at > now) return;
      this.#open.delete(deadline);
      deadline.miss();
    }
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
