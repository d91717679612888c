// The time limit of sends. Those that begin in the same turn of the event loop share one timer and one
// signal, which cost more than a fast send.

export interface Limited {
  signal: AbortSignal;
  isOver: Promise<never>; // rejects when the time is over
  end(): void; // must be called once
}

export class TimeLimit {
  readonly #ms: number;
  #begun: (() => Limited) | undefined; // in this turn

  constructor(ms: number) {
    this.#ms = ms;
  }

  begin(): Limited {
    if (!this.#begun) {
      this.#begun = this.#start();
      queueMicrotask(() => this.#begun = undefined);
    }
    return this.#begun();
  }

  #start(): () => Limited {
    const abort = new AbortController();
    const { promise: isOver, reject } = Promise.withResolvers<never>();
    isOver.catch(() => {}); // nobody may be waiting any more
    const timer = setTimeout(() => {
      const error = new Error(`The channel did not answer within ${this.#ms} ms`);
      abort.abort(error);
      reject(error);
    }, this.#ms);
    let open = 0;
    const limited: Limited = {
      signal: abort.signal,
      isOver,
      end: () => {
        if (--open === 0) clearTimeout(timer);
      },
    };
    return () => {
      open++;
      return limited;
    };
  }
}
