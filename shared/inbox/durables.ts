import { AckPolicy, DeliverPolicy, type JetStreamManager, type StreamInfo } from "nats";
import { ensureConsumer, ensureStream, type WantedStream } from "../nats/streams.ts";

// The streams and durable consumers of an inbox. Its loops ensure them at start. If NATS does not
// permit that, `deno task provision` creates them.

export interface ConsumerOptions {
  durable: string;
  // The only one whose messages it receives. Without it the consumer receives all of the stream.
  subject?: string;
  ackWaitMs: number;
  maxDeliver: number;
}

// Deliveries used up, or terminated as unreadable.
type AdvisoryKind = "MAX_DELIVERIES" | "MSG_TERMINATED";

export interface AdvisoryOptions {
  kind: AdvisoryKind;
  stream: WantedStream;
  durable: string;
  ackWaitMs: number;
  of: string; // the stream whose messages are captured
}

export interface InboxStreams {
  stream: WantedStream;
  consumer: ConsumerOptions;
  advisories: AdvisoryOptions[];
}

interface AdvisoryNames {
  subject?: string | undefined;
  stream?: string | undefined;
  durable?: string | undefined;
}

// An inbox with both kinds of advisories, which have names of their own unless others are given.
export function inboxStreams(
  stream: WantedStream,
  consumer: ConsumerOptions,
  names: Record<AdvisoryKind, AdvisoryNames> = { MAX_DELIVERIES: {}, MSG_TERMINATED: {} },
): InboxStreams {
  const advisoriesOf = (kind: AdvisoryKind): AdvisoryOptions => {
    const { name: of, ...settings } = stream;
    const own = `${of}-${consumer.durable}-${kind.toLowerCase().replace("_", "-")}`;
    const subject = `$JS.EVENT.ADVISORY.CONSUMER.${kind}.${of}.${consumer.durable}`;
    const given = names[kind];
    return {
      kind,
      stream: { ...settings, name: given.stream ?? own, subjects: [given.subject ?? subject] },
      durable: given.durable ?? own,
      ackWaitMs: consumer.ackWaitMs,
      of,
    };
  };
  const advisories = [advisoriesOf("MAX_DELIVERIES"), advisoriesOf("MSG_TERMINATED")];
  return { stream, consumer, advisories };
}

// Messages that all replicas together may hold without an ack. A single replica may hold more than
// the server's default of 1,000.
const maxAckPending = 20_000;

export async function ensureInbox(
  manager: JetStreamManager,
  { stream, consumer, advisories }: InboxStreams,
  mayMake?: boolean,
): Promise<StreamInfo> {
  // These come first, because an advisory is lost if no stream stores it.
  for (const advisory of advisories) await ensureStream(manager, advisory.stream, mayMake);
  const info = await ensureStream(manager, stream, mayMake);
  await ensureConsumer(
    manager,
    stream.name,
    {
      durable_name: consumer.durable,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      ack_wait: consumer.ackWaitMs * 1_000_000,
      max_deliver: consumer.maxDeliver,
      max_ack_pending: maxAckPending,
      ...(consumer.subject === undefined ? {} : { filter_subject: consumer.subject }),
    },
    mayMake,
    stream.newSubjects && { filter_subject: undefined },
  );
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
