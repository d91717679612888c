import { Wakeup } from "@kenri/shared/process/signals.ts";

// Who waits in this process for a change of a ticket. Redis announces the changes of all replicas.

export interface Change {
  wait(ms: number, signal: AbortSignal): Promise<void>;
  end(): void;
}

export class Changes {
  readonly #waiting = new Map<string, Set<Wakeup>>(); // by the ids of tickets
  closed = false; // the service stops, so nobody is to wait

  // The next change of the ticket. Each must be ended.
  of(id: string): Change {
    const wakeup = new Wakeup();
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting.add(wakeup));
    return {
      wait: (ms, signal) => wakeup.wait(ms, signal),
      end: () => {
        waiting.delete(wakeup);
        if (waiting.size === 0) this.#waiting.delete(id);
      },
    };
  }

  // A message of Redis: the ids of tickets that have changed.
  announced(message: string): void {
    for (const id of message.split(" ")) {
      for (const wakeup of this.#waiting.get(id) ?? []) wakeup.trigger();
    }
  }

  close(): void {
    this.closed = true;
    for (const waiting of this.#waiting.values()) {
      for (const wakeup of waiting) wakeup.trigger();
    }
  }
}
