// Protects a service that fails, and those who ask it: after failures in a row it is not asked any
// more, except by one probe from time to time. Any success ends this.

const maxFailures = 5;
const usualPauseMs = 30_000;

export class Breaker {
  readonly #pauseMs: number;
  readonly #now: () => number;
  #failures = 0; // in a row
  #probeAt = 0;

  constructor(pauseMs = usualPauseMs, now = () => performance.now()) {
    this.#pauseMs = pauseMs;
    this.#now = now;
  }

  // After this many milliseconds the service may be asked. After 0, `succeeded` or `failed` follows,
  // unless nobody waited for the answer.
  begin(): number {
    if (!this.isOpen) return 0;
    const now = this.#now();
    if (now < this.#probeAt) return this.#probeAt - now;
    this.#probeAt = now + this.#pauseMs; // this is the probe, so everybody else has to wait
    return 0;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  // Requests that were made before it opened fail later, and must not delay the probe.
  failed(): void {
    this.#failures++;
    if (this.#failures === maxFailures) this.#probeAt = this.#now() + this.#pauseMs;
  }

  get isOpen(): boolean {
    return this.#failures >= maxFailures;
  }
}
