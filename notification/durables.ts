import { AckPolicy, DeliverPolicy, type JetStreamManager, type StreamInfo } from "nats";
import { ensureConsumer, ensureStream, type WantedStream } from "@kenri/shared/nats/streams.ts";

// The streams and durable consumers that this service needs. Its loops ensure them at start. If
// NATS does not permit that, `deno task provision` creates them.

export interface ConsumerOptions {
  durable: string;
  ackWaitMs: number;
  maxDeliver: number;
}

export interface AdvisoryOptions {
  kind: "MAX_DELIVERIES" | "MSG_TERMINATED";
  stream: WantedStream;
  durable: string;
  ackWaitMs: number;
  of: string; // the stream whose messages are captured
}

export interface EventOptions {
  stream: WantedStream;
  consumer: ConsumerOptions;
  advisories: { stream: WantedStream }[];
}

// Messages that all replicas together may hold without an ack. A single replica may hold more than
// the server's default of 1,000.
const maxAckPending = 20_000;

export async function ensureEvents(
  manager: JetStreamManager,
  { stream, consumer, advisories }: EventOptions,
  mayMake?: boolean,
): Promise<StreamInfo> {
  // These come first, because an advisory is lost if no stream stores it.
  for (const advisory of advisories) await ensureStream(manager, advisory.stream, mayMake);
  const info = await ensureStream(manager, stream, mayMake);
  await ensureConsumer(manager, stream.name, {
    durable_name: consumer.durable,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    ack_wait: consumer.ackWaitMs * 1_000_000,
    max_deliver: consumer.maxDeliver,
    max_ack_pending: maxAckPending,
  }, mayMake);
  return info;
}

export async function ensureAdvisories(
  manager: JetStreamManager,
  { stream, durable, ackWaitMs }: Pick<AdvisoryOptions, "stream" | "durable" | "ackWaitMs">,
  mayMake?: boolean,
): Promise<void> {
  await ensureStream(manager, stream, mayMake);
  await ensureConsumer(manager, stream.name, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    ack_wait: ackWaitMs * 1_000_000,
    max_deliver: -1, // advisories are redelivered without a limit
  }, mayMake);
}
