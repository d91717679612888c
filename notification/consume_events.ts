import { AckPolicy, type Consumer, DeliverPolicy, type JsMsg } from "nats";
import { Batch } from "@kenri/shared/batch";
import { reasonOf, StartRefused } from "@kenri/shared/errors";
import {
  ensureConsumer,
  ensureStream,
  type NatsLink,
  type Session,
  type WantedStream,
  warnOfLoss,
} from "@kenri/shared/jetstream";
import type { Log } from "@kenri/shared/log";
import { messagesReceived } from "@kenri/shared/metrics";
import { type Database, isUnavailable } from "@kenri/shared/postgres";
import { Bell, pause } from "@kenri/shared/signals";
import { type Notification, readNotification, UnreadableMessage } from "./notification.ts";
import { receiveEvents } from "./receive_events.ts";

export interface ConsumerOptions {
  durable: string;
  ackWaitMs: number;
  maxDeliver: number;
}

export interface ConsumeParts {
  database: Database;
  link: NatsLink;
  received: Bell; // rung when there are new notifications
  log: Log;
  abandon: AbortSignal;
}

export interface ConsumeOptions {
  stream: WantedStream;
  consumer: ConsumerOptions;
  predecessorWaitMs: number;
}

const maxInHand = 2_000;
const maxPerInsert = 500;
const pullMs = 1_000; // a pull ends by itself after this, which also bounds the wait at a stop
const retryMs = 1_000;
// What replicas may hold together without an ack. With the server's default of 1,000 one would do.
const maxAckPending = 20_000;

// Stream → notifications. Like the relay it begins a new round with every connection, and whenever
// the stream or the consumer turn out to be gone.
export async function consumeEvents(
  parts: ConsumeParts,
  options: ConsumeOptions,
  stop: AbortSignal,
): Promise<void> {
  let warned = false;
  let reported = "";
  while (!stop.aborted) {
    const session = await parts.link.session(stop);
    if (!session) return;
    try {
      const consumer = await openConsumer(session, options, (info) => {
        if (!warned) warnOfLoss(info, parts.log);
        warned = true;
      });
      reported = "";
      await new Intake(parts, options).run(consumer, session.signal);
    } catch (error) {
      if (error instanceof StartRefused) throw error;
      const reason = reasonOf(error);
      if (reason !== reported && !session.signal.aborted) {
        parts.log.warn("Events can't be consumed, trying again: {reason}", { reason });
      }
      reported = reason;
      await pause(retryMs, stop);
    }
  }
}

async function openConsumer(
  { connection }: Session,
  { stream, consumer }: ConsumeOptions,
  onStream: (info: Awaited<ReturnType<typeof ensureStream>>) => void,
): Promise<Consumer> {
  const manager = await connection.jetstreamManager();
  onStream(await ensureStream(manager, stream));
  await ensureConsumer(manager, stream.name, {
    durable_name: consumer.durable,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    ack_wait: consumer.ackWaitMs * 1_000_000,
    max_deliver: consumer.maxDeliver,
    max_ack_pending: maxAckPending,
  });
  return await connection.jetstream().consumers.get(stream.name, consumer.durable);
}

// The messages in hand of one round. While the database is away nothing is pulled, and what is in
// hand is held, with a word to the server now and then: so an outage uses up no deliveries.
class Intake {
  readonly #parts: ConsumeParts;
  readonly #options: ConsumeOptions;
  readonly #inHand = new Set<JsMsg>();
  readonly #room = new Bell();
  readonly #storing: Batch<Notification, boolean>;
  #databaseAway = false;

  constructor(parts: ConsumeParts, options: ConsumeOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#storing = new Batch({
      flush: (received) => receiveEvents(parts.database, received, options.predecessorWaitMs),
      keysOf: ({ event_id }) => [event_id],
      mayBeOneItem: (error) => !isUnavailable(error),
      maxItems: maxPerInsert,
      maxFlushes: 2,
      maxWaiting: Infinity, // bounded by what is in hand
    });
  }

  async run(consumer: Consumer, signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const heartbeat = this.#sayStillWorking(ended.signal);
    try {
      while (!signal.aborted) {
        while (this.#databaseAway || this.#inHand.size > maxInHand / 2) {
          await this.#room.wait(retryMs, signal);
          if (signal.aborted) return;
        }
        await this.#pull(consumer);
      }
    } finally {
      while (this.#inHand.size > 0 && !this.#parts.abandon.aborted) {
        await this.#room.wait(retryMs, this.#parts.abandon);
      }
      for (const message of this.#inHand) message.nak(retryMs);
      ended.abort();
      await heartbeat;
    }
  }

  async #pull(consumer: Consumer): Promise<void> {
    const messages = await consumer.fetch({
      max_messages: maxInHand - this.#inHand.size,
      expires: pullMs,
    });
    for await (const message of messages) void this.#handle(message);
    const error = await messages.closed();
    if (error) throw error;
  }

  async #handle(message: JsMsg): Promise<void> {
    this.#inHand.add(message);
    try {
      const outcome = await this.#store(message);
      message.ack();
      messagesReceived.inc({ outcome });
    } catch (error) {
      this.#refuse(message, error);
    } finally {
      this.#inHand.delete(message);
      this.#room.ring();
    }
  }

  async #store(message: JsMsg): Promise<"handled" | "duplicate"> {
    const notification = readNotification(message.data);
    for (;;) {
      try {
        const isNew = await this.#storing.add(notification);
        this.#report(undefined);
        if (isNew) this.#parts.received.ring();
        return isNew ? "handled" : "duplicate";
      } catch (error) {
        if (!isUnavailable(error) || this.#parts.abandon.aborted) throw error;
        this.#report(error);
        await pause(retryMs, this.#parts.abandon);
      }
    }
  }

  #refuse(message: JsMsg, error: unknown): void {
    const sequence = message.seq;
    if (error instanceof UnreadableMessage) {
      message.term(error.message);
      messagesReceived.inc({ outcome: "unreadable" });
      this.#parts.log.error("Message {sequence} is refused for good: {error}", { sequence, error });
      return;
    }
    // Not at once: a bare nak would use up all deliveries within moments.
    message.nak(retryMs * 2 ** Math.min(message.info.deliveryCount, 6));
    messagesReceived.inc({ outcome: "failed" });
    this.#parts.log.error("Message {sequence} could not be stored: {error}", { sequence, error });
  }

  async #sayStillWorking(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#options.consumer.ackWaitMs / 3, signal);
      for (const message of this.#inHand) message.working();
    }
  }

  #report(error: unknown): void {
    const { log } = this.#parts;
    const away = error !== undefined;
    if (away && !this.#databaseAway) {
      log.error("The database is away, consuming pauses: {error}", { error: reasonOf(error) });
    }
    if (!away && this.#databaseAway) log.info("The database is back, consuming goes on");
    this.#databaseAway = away;
  }
}
