import { Buffer } from "node:buffer";
import { AckPolicy, DeliverPolicy, type JetStreamManager, type StoredMsg } from "nats";
import { z } from "zod";
import { reasonOf, StartRefused } from "@kenri/shared/errors";
import { natsNamePattern } from "@kenri/shared/config";
import { isStorableTime } from "@kenri/shared/fields";
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
import { type Durable, pull, type Pulled } from "./pull.ts";

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

const retryMs = 2_000;
const limits = { messages: 100, bytes: 4 * 1024 * 1024 };

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
      const manager = await session.connection.jetstreamManager();
      const durable = await openDurable(session, manager, options);
      while (!session.signal.aborted) {
        if (await captureSome(parts, options.kind, durable, manager) > 0) reported = "";
      }
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

async function openDurable(
  { connection }: Session,
  manager: JetStreamManager,
  { stream, durable, ackWaitMs }: AdvisoryOptions,
): Promise<Durable> {
  await ensureStream(manager, stream);
  await ensureConsumer(manager, stream.name, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    ack_wait: ackWaitMs * 1_000_000,
    max_deliver: -1, // an advisory is never given up
  });
  return { connection, stream: stream.name, name: durable };
}

// What fails ends the round, and those that were not captured come again after the ack wait.
async function captureSome(
  parts: CaptureParts,
  kind: AdvisoryOptions["kind"],
  durable: Durable,
  manager: JetStreamManager,
): Promise<number> {
  const messages: Pulled[] = [];
  await pull(durable, limits, (message) => messages.push(message));
  for (const message of messages) await capture(parts, kind, manager, message);
  return messages.length;
}

async function capture(
  { database, log }: CaptureParts,
  kind: AdvisoryOptions["kind"],
  manager: JetStreamManager,
  message: Pulled,
): Promise<void> {
  const advisory = readAdvisory(message);
  if (!advisory) {
    log.error("Advisory {sequence} can't be read", { sequence: message.sequence });
    return message.ack();
  }
  const copy = await findMessage(manager, advisory);
  const isNew = await storeAdvisory(database, kind, advisory, copy);
  message.ack();
  if (!isNew) return;
  log.error("{kind} of message {sequence} was captured", {
    kind,
    sequence: advisory.stream_seq,
    withCopy: copy !== undefined,
  });
}

// Anybody may publish here. What PostgreSQL or NATS would not take must not come again and again:
// a NUL, a time that can't be stored, a name of no possible stream.
const text = z.string().max(500).refine((value) => !value.includes("\0"));
const advisorySchema = z.object({
  id: text.min(1),
  timestamp: z.iso.datetime({ offset: true }).refine(isStorableTime),
  stream: text.regex(natsNamePattern),
  consumer: text,
  stream_seq: z.int().min(1),
  deliveries: z.int().optional(),
  reason: z.string().transform(storable).optional(),
});

type Advisory = z.infer<typeof advisorySchema>;

function readAdvisory({ data }: Pulled): Advisory | undefined {
  try {
    return advisorySchema.parse(JSON.parse(new TextDecoder().decode(data)));
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
): Promise<boolean> {
  const stored = await query(
    database,
    `insert into notification_nats_dlq
       (advisory_id, kind, stream, consumer, stream_seq, deliveries, reason, advised_at,
        message_subject, message_headers, message_body, message_stored_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     on conflict (advisory_id) do nothing
     returning 1`,
    [
      advisory.id,
      kind,
      advisory.stream,
      advisory.consumer,
      advisory.stream_seq,
      advisory.deliveries ?? null,
      advisory.reason ?? null,
      advisory.timestamp,
      copy ? storable(copy.subject) : null,
      copy ? JSON.stringify(headersOf(copy)) : null,
      copy ? Buffer.from(copy.data) : null,
      copy?.time ?? null,
    ],
  );
  return stored.length > 0;
}

function headersOf({ header }: StoredMsg): Record<string, string[]> {
  return Object.fromEntries(
    header.keys().map((name) => [storable(name), header.values(name).map(storable)]),
  );
}

// NATS lets a header hold anything; PostgreSQL can't store a NUL.
function storable(text: string): string {
  return text.replaceAll("\0", "\ufffd").toWellFormed();
}
