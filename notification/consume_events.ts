import { AckPolicy, DeliverPolicy } from "nats";
import { reasonOf, StartRefused } from "@kenri/shared/errors";
import {
  ensureConsumer,
  ensureStream,
  type NatsLink,
  type Session,
  type WantedStream,
  warnOfLoss,
} from "@kenri/shared/jetstream";
import { pause } from "@kenri/shared/signals";
import { Intake, type IntakeParts } from "./intake.ts";
import type { Durable } from "./pull.ts";

export interface ConsumerOptions {
  durable: string;
  ackWaitMs: number;
  maxDeliver: number;
}

export interface ConsumeParts extends IntakeParts {
  link: NatsLink;
}

export interface ConsumeOptions {
  stream: WantedStream;
  consumer: ConsumerOptions;
  advisories: { stream: WantedStream }[];
  predecessorWaitMs: number;
}

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
  const { link, log } = parts;
  let warned = false;
  let reported = "";
  while (!stop.aborted) {
    const session = await link.session(stop);
    if (!session) return;
    try {
      const durable = await openDurable(session, options, (info) => {
        if (!warned) warnOfLoss(info, log);
        warned = true;
      });
      await consumeFrom(durable, parts, options, session.signal, () => reported = "");
    } catch (error) {
      if (error instanceof StartRefused) throw error;
      const reason = reasonOf(error);
      if (reason !== reported && !session.signal.aborted) {
        log.warn("Events can't be consumed, trying again: {reason}", { reason });
      }
      reported = reason;
      await pause(retryMs, stop);
    }
  }
}

async function openDurable(
  { connection }: Session,
  { stream, consumer, advisories }: ConsumeOptions,
  onStream: (info: Awaited<ReturnType<typeof ensureStream>>) => void,
): Promise<Durable> {
  const manager = await connection.jetstreamManager();
  // First of all, because an advisory that no stream keeps is lost.
  for (const advisory of advisories) await ensureStream(manager, advisory.stream);
  onStream(await ensureStream(manager, stream));
  await ensureConsumer(manager, stream.name, {
    durable_name: consumer.durable,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    ack_wait: consumer.ackWaitMs * 1_000_000,
    max_deliver: consumer.maxDeliver,
    max_ack_pending: maxAckPending,
  });
  return { connection, stream: stream.name, name: consumer.durable };
}

async function consumeFrom(
  durable: Durable,
  parts: IntakeParts,
  { consumer, predecessorWaitMs }: ConsumeOptions,
  signal: AbortSignal,
  onPulled: () => void,
): Promise<void> {
  const intake = new Intake(parts, { ackWaitMs: consumer.ackWaitMs, predecessorWaitMs });
  try {
    while (!signal.aborted) {
      await intake.fill(durable, signal);
      onPulled();
    }
  } finally {
    await intake.empty();
  }
}
