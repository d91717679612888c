import { Buffer } from "node:buffer";
import type { JetStreamManager, StoredMsg } from "nats";
import { z } from "zod";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import { StartRefused } from "@kenri/shared/process/start_refused.ts";
import { natsNamePattern } from "@kenri/shared/process/settings.ts";
import { isStorableTime } from "@kenri/shared/http/fields.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { type Database, query } from "@kenri/shared/postgres/postgres.ts";
import { Provisions } from "@kenri/shared/nats/provisions.ts";
import { pause } from "@kenri/shared/process/signals.ts";
import { type AdvisoryOptions, ensureAdvisories } from "../durables.ts";
import { type Durable, pull, type Pulled } from "@kenri/shared/nats/pull.ts";

// JetStream says with an advisory that it will not deliver a message any more. An advisory is a
// plain message that nobody keeps, and it names the message by number only. So a stream of ours
// keeps the advisories, and each is stored with a copy of its message, as long as there is one.

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
  const provisions = new Provisions(parts.link, `capture of ${options.kind}`);
  let reported = "";
  while (!stop.aborted) {
    const session = await parts.link.session(stop);
    if (!session) return;
    try {
      const manager = await provisions.ensure(session, async (manager, mayMake) => {
        await ensureAdvisories(manager, options, mayMake);
        return manager;
      });
      const durable = {
        connection: session.connection,
        stream: options.stream.name,
        name: options.durable,
        refused: session.refused,
      };
      while (!session.signal.aborted) {
        if (await captureSome(parts, options, durable, manager) > 0) reported = "";
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

// What fails ends the round, and those that were not captured come again after the ack wait.
async function captureSome(
  parts: CaptureParts,
  options: AdvisoryOptions,
  durable: Durable,
  manager: JetStreamManager,
): Promise<number> {
  const messages: Pulled[] = [];
  await pull(durable, limits, (message) => messages.push(message));
  for (const message of messages) await capture(parts, options, manager, message);
  return messages.length;
}

async function capture(
  { database, log }: CaptureParts,
  { kind, of }: AdvisoryOptions,
  manager: JetStreamManager,
  message: Pulled,
): Promise<void> {
  const advisory = readAdvisory(message);
  if (!advisory) {
    log.error("Advisory {sequence} can't be read", { sequence: message.sequence });
    return message.ack();
  }
  // Anybody may publish advisories, and NATS permits us to read our own stream only.
  const copy = advisory.stream === of ? await findMessage(manager, advisory) : undefined;
  const isNew = await storeAdvisory(database, kind, advisory, copy);
  message.ack();
  if (!isNew) return;
  log.error("{kind} of message {sequence} was captured", {
    kind,
    sequence: advisory.stream_seq,
    withCopy: copy !== undefined,
  });
}

// Content that PostgreSQL or NATS would not accept must not be redelivered for ever: a NUL, a time that
// can't be stored, a name of no possible stream.
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
