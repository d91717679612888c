// Waiting that ends early: every wait of the services ends at once when its signal is aborted.

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Bell().wait(ms, signal);
}

// Resolves when the signal is aborted. Ends itself with the other signal, to leave no listener.
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true })
  );
}

// One waits, others ring. A ring that comes while nobody waits is kept for the next wait.
export class Bell {
  #rung = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      signal.addEventListener("abort", resolve as () => void, { once: true });
      this.#wake = resolve;
      await promise;
      clearTimeout(timer);
      signal.removeEventListener("abort", resolve as () => void);
      this.#wake = undefined;
    }
    this.#rung = false;
  }
}
