import { UnreadableMessage } from "@kenri/proto/entitlement/decode.ts";
import {
  type Durable,
  expiresMs,
  pull,
  type Pulled,
  type PullLimits,
} from "@kenri/shared/nats/pull.ts";
import { pause, Wakeup } from "@kenri/shared/process/signals.ts";
import { tracing } from "@kenri/shared/telemetry/tracing.ts";
import { EventStore, type EventStoreParts } from "./event_store.ts";
import { messagesReceived } from "./metrics.ts";
import { readNotification } from "./notification.ts";

export type IntakeParts = EventStoreParts;

export interface IntakeOptions {
  ackWaitMs: number;
  predecessorWaitMs: number;
}

// The next pull begins before the last one can end, so there is always an open pull.
const renewMs = expiresMs / 2;
// The limit of one pull. Messages in hand and those that open pulls may still bring never exceed
// twice this number.
const maxMessages = 1_000;
const maxBytes = 16 * 1024 * 1024; // far above 1,000 events of a usual size
const retryMs = 1_000;

// The messages in hand, from the pull to the ack. While the database is unavailable the intake
// pulls nothing and keeps the messages in hand; it reports to the server at intervals that they are
// in progress. So an outage uses up no deliveries.
export class Intake {
  readonly #parts: IntakeParts;
  readonly #store: EventStore;
  readonly #inHand = new Set<Pulled>();
  readonly #openPulls = new Set<PullLimits>(); // what each may still bring
  readonly #hasRoom = new Wakeup();
  readonly #ended = new AbortController();
  readonly #heartbeat: Promise<void>;
  #bytesInHand = 0;
  #pullFailed: unknown;

  constructor(parts: IntakeParts, { ackWaitMs, predecessorWaitMs }: IntakeOptions) {
    this.#parts = parts;
    this.#store = new EventStore(parts, predecessorWaitMs);
    this.#heartbeat = this.#reportProgress(ackWaitMs / 3);
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
    // Until the database is known to be available, one message at a time is pulled to find out.
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
        void this.#handle(message);
      });
    } catch (error) {
      this.#pullFailed ??= error;
    } finally {
      this.#openPulls.delete(left);
      this.#hasRoom.trigger();
    }
  }

  async #handle(message: Pulled): Promise<void> {
    this.#inHand.add(message);
    this.#bytesInHand += message.data.length;
    try {
      const notification = readNotification(message.data);
      if (tracing) Object.assign(notification, { traceparent: message.header("traceparent") });
      const isNew = await this.#store.store(notification);
      message.ack();
      messagesReceived[isNew ? "handled" : "duplicate"].inc();
    } catch (error) {
      this.#refuse(message, error);
    } finally {
      this.#inHand.delete(message);
      this.#bytesInHand -= message.data.length;
      this.#hasRoom.trigger();
    }
  }

  #refuse(message: Pulled, error: unknown): void {
    const { log, abandon } = this.#parts;
    const { sequence } = message;
    const about = { event_id: message.header("Nats-Msg-Id"), trace_id: message.header("trace_id") };
    if (abandon.aborted) return message.retryIn(retryMs);
    if (error instanceof UnreadableMessage) {
      message.terminate(error.message);
      messagesReceived.unreadable.inc();
      const more = { ...about, outcome: "unreadable" };
      return log.error("Message {sequence} can't be read and is not redelivered: {error}", {
        sequence,
        error,
        ...more,
      });
    }
    // With a delay, because a nak without one would use up all deliveries within moments.
    message.retryIn(retryMs * 2 ** Math.min(message.deliveries, 6));
    messagesReceived.failed.inc();
    const more = { ...about, outcome: "failed", deliveries: message.deliveries };
    log.error("Message {sequence} could not be stored: {error}", { sequence, error, ...more });
  }

  // Finishes the messages in hand and those that open pulls still bring, because a pull can't be
  // cancelled. Gives back the messages that are not finished in time.
  async empty(): Promise<void> {
    const { abandon } = this.#parts;
    while (this.#inHand.size + this.#openPulls.size > 0 && !abandon.aborted) {
      await this.#hasRoom.wait(retryMs, abandon);
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
