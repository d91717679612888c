import { Buffer } from "node:buffer";
import { AckPolicy, DeliverPolicy, type JetStreamManager, type JsMsg, type StoredMsg } from "nats";
import { z } from "zod";
import { reasonOf, StartRefused } from "@kenri/shared/errors";
import {
  ensureConsumer,
  ensureStream,
  type NatsLink,
  type Session,
  type WantedStream,
} from "@kenri/shared/jetstream";
import type { Log } from "@kenri/shared/log";
import { type Database, query } from "@kenri/shared/postgres";
import { pause } from "@kenri/shared/signals";

// JetStream says with an advisory that it will not deliver a message any more. An advisory is a
// plain message that nobody keeps, and it names the message by number only. So a stream of ours
// keeps the advisories, and each is stored with a copy of its message, as long as there is one.

export interface AdvisoryOptions {
  kind: "MAX_DELIVERIES" | "MSG_TERMINATED";
  stream: WantedStream;
  durable: string;
  ackWaitMs: number;
}

export interface CaptureParts {
  database: Database;
  link: NatsLink;
  log: Log;
}

const pullMs = 1_000;
const retryMs = 2_000;
const perPull = 100;

export async function captureAdvisories(
  parts: CaptureParts,
  options: AdvisoryOptions,
  stop: AbortSignal,
): Promise<void> {
  let reported = "";
  while (!stop.aborted) {
    const session = await parts.link.session(stop);
    if (!session) return;
    try {
      await captureRound(parts, options, session);
      reported = "";
    } catch (error) {
      if (error instanceof StartRefused) throw error;
      const reason = reasonOf(error);
      if (reason !== reported && !session.signal.aborted) {
        parts.log.warn("Advisories can't be captured, trying again: {reason}", { reason });
      }
      reported = reason;
      await pause(retryMs, stop);
    }
  }
}

async function captureRound(
  parts: CaptureParts,
  { stream, durable, ackWaitMs, kind }: AdvisoryOptions,
  { connection, signal }: Session,
): Promise<void> {
  const manager = await connection.jetstreamManager();
  await ensureStream(manager, stream);
  await ensureConsumer(manager, stream.name, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    ack_wait: ackWaitMs * 1_000_000,
    max_deliver: -1, // an advisory is never given up
  });
  const consumer = await connection.jetstream().consumers.get(stream.name, durable);
  while (!signal.aborted) {
    const messages = await consumer.fetch({ max_messages: perPull, expires: pullMs });
    for await (const message of messages) await capture(parts, kind, manager, message);
    const error = await messages.closed();
    if (error) throw error;
  }
}

async function capture(
  { database, log }: CaptureParts,
  kind: AdvisoryOptions["kind"],
  manager: JetStreamManager,
  message: JsMsg,
): Promise<void> {
  const advisory = readAdvisory(message);
  if (!advisory) {
    log.error("Advisory {sequence} can't be read", { sequence: message.seq });
    return message.ack();
  }
  try {
    const copy = await findMessage(manager, advisory);
    await storeAdvisory(database, kind, advisory, copy);
    message.ack();
    log.error("{kind} of message {sequence} was captured", {
      kind,
      sequence: advisory.stream_seq,
      withCopy: copy !== undefined,
    });
  } catch (error) {
    message.nak(retryMs);
    log.error("An advisory could not be stored: {error}", { error });
  }
}

const advisorySchema = z.object({
  id: z.string().min(1).max(1_000),
  timestamp: z.iso.datetime({ offset: true }),
  stream: z.string(),
  consumer: z.string(),
  stream_seq: z.int().min(1),
  deliveries: z.int().optional(),
  reason: z.string().optional(),
});

type Advisory = z.infer<typeof advisorySchema>;

function readAdvisory(message: JsMsg): Advisory | undefined {
  try {
    return advisorySchema.parse(message.json());
  } catch {
    return undefined;
  }
}

const messageNotFound = 10037;
const streamNotFound = 10059;

// A message that was stored after the advisory is another one: the stream was made anew and has
// used the number again.
async function findMessage(
  manager: JetStreamManager,
  advisory: Advisory,
): Promise<StoredMsg | undefined> {
  try {
    const message = await manager.streams.getMessage(advisory.stream, { seq: advisory.stream_seq });
    return message.time <= new Date(advisory.timestamp) ? message : undefined;
  } catch (error) {
    const code = (error as { api_error?: { err_code?: number } }).api_error?.err_code;
    if (code === messageNotFound || code === streamNotFound) return undefined;
    throw error;
  }
}

async function storeAdvisory(
  database: Database,
  kind: AdvisoryOptions["kind"],
  advisory: Advisory,
  copy: StoredMsg | undefined,
): Promise<void> {
  await query(
    database,
    `insert into notification_nats_dlq
       (advisory_id, kind, stream, consumer, stream_seq, deliveries, reason, advised_at,
        message_subject, message_headers, message_body, message_stored_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     on conflict (advisory_id) do nothing`,
    [
      advisory.id,
      kind,
      advisory.stream,
      advisory.consumer,
      advisory.stream_seq,
      advisory.deliveries ?? null,
      advisory.reason ?? null,
      advisory.timestamp,
      copy?.subject ?? null,
      copy ? JSON.stringify(headersOf(copy)) : null,
      copy ? Buffer.from(copy.data) : null,
      copy?.time ?? null,
    ],
  );
}

function headersOf({ header }: StoredMsg): Record<string, string[]> {
  return Object.fromEntries(header.keys().map((name) => [name, header.values(name)]));
}
