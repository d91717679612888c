import { Batch } from "@kenri/shared/queue/batch.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { type Database, isUnavailable } from "@kenri/shared/postgres/postgres.ts";
import { observeBatch } from "@kenri/shared/telemetry/scrape.ts";
import { pause, Wakeup } from "@kenri/shared/process/signals.ts";
import { stepTogether, tracing } from "@kenri/shared/telemetry/tracing.ts";
import type { NotificationRow } from "./delivery.ts";
import { messagesReceived } from "./metrics.ts";
import { UnreadableMessage } from "@kenri/proto/entitlement/decode.ts";
import { type Notification, readNotification } from "./notification.ts";
import {
  type Durable,
  expiresMs,
  pull,
  type Pulled,
  type PullLimits,
} from "@kenri/shared/nats/pull.ts";
import { receiveEvents } from "./receive_events.ts";

export interface IntakeParts {
  database: Database;
  toDelivery: Handover<NotificationRow>;
  log: Log;
  abandon: AbortSignal;
}

export interface IntakeOptions {
  ackWaitMs: number;
  predecessorWaitMs: number;
}

// The next pull begins before the last one can end, so there is always one in place.
const renewMs = expiresMs / 2;
// The limit of one pull. Messages in hand, and those that open pulls may still bring, never exceed
// twice this.
const maxMessages = 1_000;
const maxBytes = 16 * 1024 * 1024; // far above 1,000 events as they should be
const maxPerInsert = 500;
const retryMs = 1_000;

// The messages in hand, from the pull to the answer. While the database is away nothing is pulled,
// and what is in hand is held, with a word to the server now and then: so an outage uses up no
// deliveries.
export class Intake {
  readonly #parts: IntakeParts;
  readonly #inHand = new Set<Pulled>();
  readonly #asked = new Set<PullLimits>(); // what may still come of each open pull
  readonly #room = new Wakeup();
  readonly #storing: Batch<Notification, boolean>;
  readonly #ended = new AbortController();
  readonly #heartbeat: Promise<void>;
  #bytesInHand = 0;
  #pullFailed: unknown;
  #databaseAnswers = false; // not known before the first message
  #reportedAway = false;

  constructor(parts: IntakeParts, { ackWaitMs, predecessorWaitMs }: IntakeOptions) {
    this.#parts = parts;
    this.#storing = new Batch({
      flush: (received: Notification[]) =>
        stepTogether("receive", received, (received) =>
          parts.toDelivery.write(
            received.length,
            (lease) => receiveEvents(parts.database, received, predecessorWaitMs, lease),
          )),
      keysOf: ({ event_id }) => [event_id],
      mayBeOneItem: (error) => !isOutage(error),
      maxItems: maxPerInsert,
      maxFlushes: 2,
      maxWaiting: Infinity, // bounded by what is in hand
    });
    observeBatch("received", this.#storing);
    this.#heartbeat = this.#sayStillWorking(ackWaitMs / 3);
  }

  // Waits for room and begins a pull. Returns when it is over, or when it is time for the next one.
  async fill(durable: Durable, signal: AbortSignal): Promise<void> {
    let limits = this.#limitsOfNext(durable);
    while (!limits) {
      await this.#room.wait(retryMs, signal);
      if (signal.aborted) return;
      limits = this.#limitsOfNext(durable);
    }
    const isOver = new Wakeup();
    void this.#pull(durable, limits).then(() => isOver.trigger());
    await isOver.wait(renewMs, signal);
    if (this.#pullFailed) throw this.#pullFailed;
  }

  async #pull(durable: Durable, limits: PullLimits): Promise<void> {
    const left = { ...limits };
    this.#asked.add(left);
    try {
      await pull(durable, limits, (message) => {
        left.messages--;
        left.bytes -= message.data.length;
        void this.#handle(message);
      });
    } catch (error) {
      this.#pullFailed ??= error;
    } finally {
      this.#asked.delete(left);
      this.#room.trigger();
    }
  }

  // Finishes the messages in hand and those that open pulls still bring, because a pull can't be
  // cancelled. Messages that are not finished in time are given back.
  async empty(): Promise<void> {
    const { abandon } = this.#parts;
    while (this.#inHand.size + this.#asked.size > 0 && !abandon.aborted) {
      await this.#room.wait(retryMs, abandon);
    }
    for (const message of this.#inHand) message.retryIn(retryMs);
    this.#ended.abort();
    await this.#heartbeat;
  }

  #limitsOfNext({ connection }: Durable): PullLimits | undefined {
    let messages = this.#inHand.size;
    let bytes = this.#bytesInHand;
    for (const left of this.#asked) {
      messages += left.messages;
      bytes += left.bytes;
    }
    // A message that alone is above the limit would stay in the stream for ever.
    const largest = (connection.info?.max_payload ?? 0) + 64 * 1024;
    const limits = { messages: maxMessages, bytes: Math.max(maxBytes, largest) };
    // One message finds out whether the database answers, before more are asked for.
    if (!this.#databaseAnswers) return messages === 0 ? { ...limits, messages: 1 } : undefined;
    return messages <= limits.messages && bytes <= limits.bytes ? limits : undefined;
  }

  async #handle(message: Pulled): Promise<void> {
    this.#inHand.add(message);
    this.#bytesInHand += message.data.length;
    try {
      const notification = readNotification(message.data);
      if (tracing) Object.assign(notification, { traceparent: message.header("traceparent") });
      const isNew = await this.#store(notification);
      message.ack();
      messagesReceived[isNew ? "handled" : "duplicate"].inc();
    } catch (error) {
      this.#refuse(message, error);
    } finally {
      this.#inHand.delete(message);
      this.#bytesInHand -= message.data.length;
      this.#room.trigger();
    }
  }

  async #store(notification: Notification): Promise<boolean> {
    for (;;) {
      try {
        const isNew = await this.#storing.add(notification);
        this.#noteDatabase(true);
        return isNew;
      } catch (error) {
        const away = isOutage(error);
        this.#noteDatabase(!away, error);
        if (!away || this.#parts.abandon.aborted) throw error;
        await pause(retryMs, this.#parts.abandon);
      }
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
      return log.error("Message {sequence} is refused for good: {error}", {
        sequence,
        error,
        ...more,
      });
    }
    // Not at once: a bare nak would use up all deliveries within moments.
    message.retryIn(retryMs * 2 ** Math.min(message.deliveries, 6));
    messagesReceived.failed.inc();
    const more = { ...about, outcome: "failed", deliveries: message.deliveries };
    log.error("Message {sequence} could not be stored: {error}", { sequence, error, ...more });
  }

  async #sayStillWorking(everyMs: number): Promise<void> {
    while (!this.#ended.signal.aborted) {
      await pause(everyMs, this.#ended.signal);
      for (const message of this.#inHand) message.stillWorking();
    }
  }

  #noteDatabase(answers: boolean, error?: unknown): void {
    this.#databaseAnswers = answers;
    if (this.#reportedAway === !answers) return;
    this.#reportedAway = !answers;
    const { log } = this.#parts;
    if (answers) log.info("The database is back, consuming goes on");
    else log.error("The database is away, consuming pauses: {error}", { error: reasonOf(error) });
  }
}

// No message is to blame either when a table or a right is missing, as before the migrations.
function isOutage(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return isUnavailable(error) || /^42/.test(String(code));
}
