import type { JSX } from "hono/jsx/jsx-runtime";
import type { Caller } from "../access/caller.ts";
import { unavailable } from "../http/errors.ts";
import { pause } from "../process/signals.ts";

// What changes on a page, by the name of its place. While somebody listens it is read once a second,
// however many they are; while nobody does, never.

export type Fragments = Record<string, JSX.Element>;

const everyMs = 1_000;
const maxListeners = 32;
// One person may have a few pages open, and must leave room for others.
const maxListenersOfCaller = 8;
// Whoever takes nothing for so long is gone, or so slow that reloading serves better.
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
    // A stream that stayed open, or a database that is slow to tell, would hold the end of the service
    // up.
    signal.addEventListener("abort", () => this.#endAll(), { once: true });
    while (!signal.aborted) {
      await this.#sample(performance.now());
      if (this.#listeners.size > 0) this.#tell(await this.#read());
      await pause(everyMs, signal);
    }
  }

  // The figures are for a caller until its credential ends. To ask for the head alone keeps no place.
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

  // Without credentials all callers have the same name, which is none.
  #refuseTooMany(name: string): void {
    const ofCaller = [...this.#listeners].filter(({ caller }) => caller === name).length;
    if (
      this.#listeners.size >= maxListeners || (name !== "" && ofCaller >= maxListenersOfCaller)
    ) throw unavailable("too many watch already, reload the page instead", 60);
  }

  #tell(fragments: Fragments): void {
    const written = Object.entries(fragments).map(([name, shown]) => [name, `${shown}`]);
    const bytes = encoder.encode(`data: ${JSON.stringify(Object.fromEntries(written))}\n\n`);
    for (const listener of this.#listeners) {
      if (Date.now() >= listener.expiresAtMs) {
        this.#end(listener);
        continue;
      }
      // Each message is whole, so whoever has not taken the last one needs no other.
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
