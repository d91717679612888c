import type { JetStreamManager, MsgHdrs, StreamInfo } from "nats";
import type { Log } from "../process/log.ts";
import { pause } from "../process/signals.ts";
import type { NatsLink } from "../nats/link.ts";
import type { Message } from "../nats/pull.ts";
import { eachSession } from "../nats/sessions.ts";
import { storedMessage } from "../nats/stored_message.ts";
import { watermarkLagMs, watermarkSubject } from "../nats/watermark_subject.ts";

// The events of a stream for a service that keeps what it needs of them in memory. Each replica
// receives all events, and nothing in NATS belongs to it: it subscribes to the subjects, so that it
// receives an event at once, and reads the stream by sequence, so that it misses none. It thus
// receives each event at least twice, in any order.

export interface ReadOnlyParts<Event> {
  name: string; // of the loop
  link: NatsLink;
  log: Log;
  stream: string;
  watermarksOf?: string; // the subject whose watermarks it receives
  decode(message: Message): Event;
  // Loads what the events before this moment have led to. Called at the start, and again when the
  // stream no longer has all events since then, or one of them can't be read.
  load(): Promise<void>;
  // Returns whether the event is new.
  take(event: Event): boolean;
  counts: Record<"handled" | "duplicate" | "unreadable", { inc(): void }>;
}

const pollMs = 1_000;
const maxReads = 100; // at the same time

export class ReadOnlyInbox<Event> {
  readonly #parts: ReadOnlyParts<Event>;
  #createdAt: string | undefined; // of the stream that was read; undefined until it was loaded
  #sequence = 0; // up to which it was read
  #currentAt = -Infinity;
  #watermarkAt = -Infinity;

  constructor(parts: ReadOnlyParts<Event>) {
    this.#parts = parts;
  }

  // The time since all events in the stream had been received; Infinity before they are loaded.
  get ageMs(): number {
    return performance.now() - this.#currentAt;
  }

  // The time since the stream had every event of its owner, as the last watermark says. It may have
  // waited in the connection, but the server has sent it after its last answer to a question of ours.
  get watermarkAgeMs(): number {
    return performance.now() - this.#watermarkAt;
  }

  run(stop: AbortSignal): Promise<void> {
    const { name, link, log, stream, watermarksOf } = this.#parts;
    return eachSession(link, {
      name,
      complaint: "Events can't be read, trying again: {reason}",
      log,
      ensure: async ({ streams }) => void await streams.info(stream),
      work: async ({ session: { connection, signal }, manager }, works) => {
        const { config } = await manager.streams.info(stream);
        const subscriptions = config.subjects.map((subject) =>
          connection.subscribe(subject, {
            callback: (error, message) => {
              if (error || !this.#createdAt) return;
              this.#take(asMessage(message.subject, message.data, message.headers));
            },
          })
        );
        if (watermarksOf !== undefined) {
          const callback = () => void (this.#watermarkAt = this.#currentAt - watermarkLagMs);
          subscriptions.push(connection.subscribe(watermarkSubject(watermarksOf), { callback }));
        }
        try {
          while (!signal.aborted) {
            await this.#catchUp(manager, signal);
            works();
            await pause(pollMs, signal);
          }
        } finally {
          for (const subscription of subscriptions) subscription.unsubscribe();
        }
      },
    }, stop);
  }

  async #catchUp(manager: JetStreamManager, signal: AbortSignal): Promise<void> {
    const { stream, load } = this.#parts;
    const askedAt = performance.now();
    const info = await manager.streams.info(stream);
    if (!this.#goesOn(info)) {
      this.#createdAt = undefined;
      await load();
      this.#createdAt = String(info.created);
      this.#sequence = info.state.last_seq;
    }
    while (this.#sequence < info.state.last_seq) {
      const count = Math.min(maxReads, info.state.last_seq - this.#sequence);
      const messages = await Promise.all(
        Array.from(
          { length: count },
          (_, i) => storedMessage(manager, stream, this.#sequence + 1 + i),
        ),
      );
      if (signal.aborted) return;
      const taken = messages.map((message) =>
        message && this.#take(asMessage(message.subject, message.data, message.header), message.seq)
      );
      if (!taken.every(Boolean)) {
        // Nobody knows what a message has said that was deleted or can't be read.
        this.#createdAt = undefined;
        return await this.#catchUp(manager, signal);
      }
      this.#sequence += count;
    }
    this.#currentAt = askedAt;
  }

  // Whether the stream still has all messages after those that were read.
  #goesOn({ created, state }: StreamInfo): boolean {
    return this.#createdAt === String(created) && state.first_seq <= this.#sequence + 1 &&
      state.last_seq >= this.#sequence;
  }

  // Returns whether the event can be read. One that can't is reported when it is read from the stream,
  // where it has a sequence.
  #take(message: Message, sequence?: number): boolean {
    const { decode, take, counts, log } = this.#parts;
    try {
      counts[take(decode(message)) ? "handled" : "duplicate"].inc();
      return true;
    } catch (error) {
      if (sequence !== undefined) {
        counts.unreadable.inc();
        log.error("Message {sequence} can't be read and is left out: {error}", { sequence, error });
      }
      return false;
    }
  }
}

function asMessage(subject: string, data: Uint8Array, headers: MsgHdrs | undefined): Message {
  return { subject, data, header: (name) => headers?.get(name) || undefined };
}
