// Every wait in the services ends at once when its signal is aborted.

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Wakeup().wait(ms, signal);
}

// Resolves when the signal is aborted.
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true })
  );
}

// One caller waits, others trigger. A trigger while nobody waits ends the next wait.
export class Wakeup {
  #isTriggered = false;
  #wake: (() => void) | undefined;

  trigger(): void {
    this.#isTriggered = true;
    this.#wake?.();
  }

  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#isTriggered && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      signal.addEventListener("abort", resolve as () => void, { once: true });
      this.#wake = resolve;
      await promise;
      clearTimeout(timer);
      signal.removeEventListener("abort", resolve as () => void);
      this.#wake = undefined;
    }
    this.#isTriggered = false;
  }
}
