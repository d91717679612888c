import { UnreadableMessage } from "@kenri/proto/unreadable.ts";
import { type Durable, expiresMs, pull, type Pulled, type PullLimits } from "../nats/pull.ts";
import type { Log } from "../process/log.ts";
import { pause, Wakeup } from "../process/signals.ts";
import { tracing } from "../telemetry/tracing.ts";
import { EventStore } from "./event_store.ts";
import type { Inbox, InboxEvent } from "./inbox.ts";

// What became of a message: stored, known already, terminated, or redelivered later.
export const outcomes = ["handled", "duplicate", "unreadable", "failed"] as const;
export type Outcome = typeof outcomes[number];

// The next pull begins before the last one can end, so there is always an open pull.
const renewMs = expiresMs / 2;
// The limit of one pull. Messages in hand and those that open pulls may still bring never exceed
// twice this number.
const maxMessages = 500; // with more in hand at once, the garbage collector copies most of them
const maxBytes = 16 * 1024 * 1024; // far above 500 events of a usual size
const retryMs = 1_000;

// The messages in hand, from the pull to the ack. While the store is unavailable the intake
// pulls nothing and keeps the messages in hand; it reports to the server at intervals that they are
// in progress. So an outage uses up no deliveries.
export class Intake<Event extends InboxEvent> {
  readonly #inbox: Inbox<Event>;
  readonly #log: Log;
  readonly #abandon: AbortSignal;
  readonly #store: EventStore<Event>;
  readonly #inHand = new Set<Pulled>();
  readonly #openPulls = new Set<PullLimits>(); // what each may still bring
  readonly #hasRoom = new Wakeup();
  readonly #ended = new AbortController();
  readonly #heartbeat: Promise<void>;
  #bytesInHand = 0;
  #pullFailed: unknown;

  constructor(parts: { log: Log; abandon: AbortSignal }, inbox: Inbox<Event>) {
    this.#inbox = inbox;
    this.#log = parts.log;
    this.#abandon = parts.abandon;
    this.#store = new EventStore(parts, inbox);
    this.#heartbeat = this.#reportProgress(inbox.consumer.ackWaitMs / 3);
  }

  // Waits for room and begins a pull. Returns when the pull ends or when it is time for the next
  // one.
  async fill(durable: Durable, signal: AbortSignal): Promise<void> {
    let limits = this.#limitsOfNext(durable);
    while (!limits) {
      await this.#hasRoom.wait(retryMs, signal);
      if (signal.aborted) return;
      limits = this.#limitsOfNext(durable);
    }
    const isOver = new Wakeup();
    void this.#pull(durable, limits).then(() => isOver.trigger());
    await isOver.wait(renewMs, signal);
    if (this.#pullFailed) throw this.#pullFailed;
  }

  #limitsOfNext({ connection }: Durable): PullLimits | undefined {
    let messages = this.#inHand.size;
    let bytes = this.#bytesInHand;
    for (const left of this.#openPulls) {
      messages += left.messages;
      bytes += left.bytes;
    }
    // A single message above the limit would stay in the stream for ever.
    const largest = (connection.info?.max_payload ?? 0) + 64 * 1024;
    const limits = { messages: maxMessages, bytes: Math.max(maxBytes, largest) };
    // Until the store is known to be available, one message at a time is pulled to find out.
    if (!this.#store.isAvailable) return messages === 0 ? { ...limits, messages: 1 } : undefined;
    return messages <= limits.messages && bytes <= limits.bytes ? limits : undefined;
  }

  async #pull(durable: Durable, limits: PullLimits): Promise<void> {
    const left = { ...limits };
    this.#openPulls.add(left);
    try {
      await pull(durable, limits, (message) => {
        left.messages--;
        left.bytes -= message.data.length;
        this.#handle(message);
      });
    } catch (error) {
      this.#pullFailed ??= error;
    } finally {
      this.#openPulls.delete(left);
      this.#hasRoom.trigger();
    }
  }

  // Without an async function, whose promises would cost more than the rest.
  #handle(message: Pulled): void {
    this.#inHand.add(message);
    this.#bytesInHand += message.data.length;
    let event: Event;
    try {
      event = this.#inbox.decode(message);
      if (tracing) Object.assign(event, { traceparent: message.header("traceparent") });
    } catch (error) {
      return this.#refuse(message, error);
    }
    this.#store.store(event).then(
      (isNew) => this.#accept(message, isNew),
      (error) => this.#refuse(message, error),
    );
  }

  #accept(message: Pulled, isNew: boolean): void {
    try {
      message.ack();
      this.#inbox.counts[isNew ? "handled" : "duplicate"].inc();
      this.#drop(message);
    } catch (error) { // the connection is closed
      this.#refuse(message, error);
    }
  }

  #drop(message: Pulled): void {
    this.#inHand.delete(message);
    this.#bytesInHand -= message.data.length;
    this.#hasRoom.trigger();
  }

  #refuse(message: Pulled, error: unknown): void {
    this.#drop(message);
    const { counts } = this.#inbox;
    const { sequence } = message;
    const about = { event_id: message.header("Nats-Msg-Id"), trace_id: message.header("trace_id") };
    if (this.#abandon.aborted) return message.retryIn(retryMs);
    if (error instanceof UnreadableMessage) {
      message.terminate(error.message);
      counts.unreadable.inc();
      const more = { ...about, outcome: "unreadable" };
      return this.#log.error("Message {sequence} can't be read and is not redelivered: {error}", {
        sequence,
        error,
        ...more,
      });
    }
    // With a delay, because a nak without one would use up all deliveries within moments.
    message.retryIn(retryMs * 2 ** Math.min(message.deliveries, 6));
    counts.failed.inc();
    const more = { ...about, outcome: "failed", deliveries: message.deliveries };
    this.#log.error("Message {sequence} could not be stored: {error}", {
      sequence,
      error,
      ...more,
    });
  }

  // Finishes the messages in hand and those that open pulls still bring, because a pull can't be
  // cancelled. Gives back the messages that are not finished in time.
  async empty(): Promise<void> {
    while (this.#inHand.size + this.#openPulls.size > 0 && !this.#abandon.aborted) {
      await this.#hasRoom.wait(retryMs, this.#abandon);
    }
    for (const message of this.#inHand) message.retryIn(retryMs);
    this.#ended.abort();
    await this.#heartbeat;
  }

  async #reportProgress(everyMs: number): Promise<void> {
    while (!this.#ended.signal.aborted) {
      await pause(everyMs, this.#ended.signal);
      for (const message of this.#inHand) message.stillWorking();
    }
  }
}
