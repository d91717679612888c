import type { JSX } from "hono/jsx/jsx-runtime";
import type { Caller } from "../access/caller.ts";
import { unavailable } from "../http/errors.ts";
import { pause } from "../process/signals.ts";

// The changing parts of a page, by the name of their element. They are read once a second for all
// listeners together, and not at all while nobody listens.

export type Fragments = Record<string, JSX.Element>;

const everyMs = 1_000;
const maxListeners = 32;
// Enough for the open pages of one person, who must not take all places.
const maxListenersOfCaller = 8;
// A listener that takes nothing for this many seconds is gone or too slow.
const maxMissed = 30;

interface Listener {
  caller: string;
  controller: ReadableStreamDefaultController<Uint8Array>;
  missed: number;
  expiresAtMs: number;
}

export class LiveFigures {
  readonly #read: () => Promise<Fragments>;
  readonly #sample: (atMs: number) => Promise<void>;
  readonly #listeners = new Set<Listener>();
  #ended = false;

  constructor(read: () => Promise<Fragments>, sample: (atMs: number) => Promise<void>) {
    this.#read = read;
    this.#sample = sample;
  }

  async run(signal: AbortSignal): Promise<void> {
    // An open stream or a slow read of the database must not delay the shutdown.
    signal.addEventListener("abort", () => this.#endAll(), { once: true });
    while (!signal.aborted) {
      await this.#sample(performance.now());
      if (this.#listeners.size > 0) this.#send(await this.#read());
      await pause(everyMs, signal);
    }
  }

  // A stream ends with the caller's credential. A HEAD request takes no place.
  listen({ name, expiresAtMs = Infinity }: Caller, isHead: boolean): Response {
    if (this.#ended) throw unavailable("the service is stopping");
    if (isHead) return new Response(null, { headers });
    this.#refuseTooMany(name);
    let listener: Listener;
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        listener = { caller: name, controller, missed: 0, expiresAtMs };
        this.#listeners.add(listener);
        controller.enqueue(encoder.encode(": hello\n\n"));
      },
      cancel: () => void this.#listeners.delete(listener),
    });
    return new Response(stream, { headers });
  }

  // If callers need no credential, all have the same empty name.
  #refuseTooMany(name: string): void {
    const ofCaller = [...this.#listeners].filter(({ caller }) => caller === name).length;
    if (
      this.#listeners.size >= maxListeners || (name !== "" && ofCaller >= maxListenersOfCaller)
    ) throw unavailable("too many live pages are open, reload this page instead", 60);
  }

  #send(fragments: Fragments): void {
    const written = Object.entries(fragments).map(([name, shown]) => [name, `${shown}`]);
    const bytes = encoder.encode(`data: ${JSON.stringify(Object.fromEntries(written))}\n\n`);
    for (const listener of this.#listeners) {
      if (Date.now() >= listener.expiresAtMs) {
        this.#end(listener);
        continue;
      }
      // Each message is complete, so a slow listener may miss some.
      if ((listener.controller.desiredSize ?? 0) > 0) {
        listener.controller.enqueue(bytes);
        listener.missed = 0;
      } else if (++listener.missed > maxMissed) this.#end(listener);
    }
  }

  #endAll(): void {
    this.#ended = true;
    for (const listener of this.#listeners) this.#end(listener);
  }

  #end(listener: Listener): void {
    this.#listeners.delete(listener);
    listener.controller.close();
  }
}

const headers = { "Content-Type": "text/event-stream", "Cache-Control": "no-store" };
const encoder = new TextEncoder();
