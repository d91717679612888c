import { Buffer } from "node:buffer";
import type { JetStreamManager, StoredMsg } from "nats";
import { z } from "zod";
import { natsNamePattern } from "../process/setting_kinds.ts";
import { isStorableTime } from "../http/fields.ts";
import type { NatsLink } from "../nats/link.ts";
import type { Log } from "../process/log.ts";
import { type Database, query } from "../postgres/postgres.ts";
import { name, sql } from "../postgres/sql.ts";
import { storedMessage } from "../nats/stored_message.ts";
import { eachSession } from "../nats/sessions.ts";
import { type AdvisoryOptions, ensureAdvisories } from "./durables.ts";
import { type Durable, pull, type Pulled } from "../nats/pull.ts";

// When JetStream gives up delivering a message it publishes an advisory: a plain message that
// nothing stores and that names the message only by its sequence. So a stream of our own keeps the
// advisories, and each is stored with a copy of its message while the stream still has it.

//
// The table has these columns: dlq_id, advisory_id (unique), kind, stream, consumer, stream_seq,
// deliveries, reason, advised_at, message_subject, message_headers (jsonb), message_body (bytea),
// message_stored_at, and operation_id for a message that was received again (dead_messages.ts).

export interface CaptureParts {
  name: string; // of the loop
  mayWait?: boolean; // as in Inbox
  link: NatsLink;
  log: Log;
  database: Database;
  table: string;
}

const limits = { messages: 100, bytes: 4 * 1024 * 1024 };

export function captureAdvisories(
  parts: CaptureParts,
  options: AdvisoryOptions,
  stop: AbortSignal,
): Promise<void> {
  return eachSession(parts.link, {
    name: parts.name,
    mayWait: parts.mayWait ?? false,
    complaint: "Capturing advisories failed, retrying: {reason}",
    log: parts.log,
    ensure: (manager, mayMake) => ensureAdvisories(manager, options, mayMake),
    work: async ({ session, manager }, works) => {
      const durable = {
        connection: session.connection,
        service: parts.link.name,
        stream: options.stream.name,
        name: options.durable,
        refused: session.refused,
      };
      while (!session.signal.aborted) {
        if (await captureSome(parts, options, durable, manager) > 0) works();
      }
    },
  }, stop);
}

// A failure ends the round. JetStream redelivers the remaining advisories after the ack wait.
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
  { database, table, log }: CaptureParts,
  { kind, of }: AdvisoryOptions,
  manager: JetStreamManager,
  message: Pulled,
): Promise<void> {
  const advisory = readAdvisory(message);
  if (!advisory) {
    log.error("Advisory {sequence} is unreadable and was dropped", { sequence: message.sequence });
    return message.ack();
  }
  // Any NATS user may publish advisories, but this service may read only its own stream.
  const copy = advisory.stream === of ? await findMessage(manager, advisory) : undefined;
  const isNew = await storeAdvisory({ database, table }, kind, advisory, copy);
  message.ack();
  if (!isNew) return;
  log.error("{kind}: message {sequence} was captured as a dead letter", {
    kind,
    sequence: advisory.stream_seq,
    withCopy: copy !== undefined,
  });
}

// An advisory with content that PostgreSQL or NATS would refuse must not be redelivered forever: a
// NUL, a time that can't be stored, an invalid stream name.
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

// A message stored after the advisory is a different one: the stream was made anew and reuses
// sequences.
async function findMessage(
  manager: JetStreamManager,
  { stream, stream_seq, timestamp }: Advisory,
): Promise<StoredMsg | undefined> {
  const message = await storedMessage(manager, stream, stream_seq);
  return message && message.time <= new Date(timestamp) ? message : undefined;
}

async function storeAdvisory(
  { database, table }: Pick<CaptureParts, "database" | "table">,
  kind: AdvisoryOptions["kind"],
  advisory: Advisory,
  copy: StoredMsg | undefined,
): Promise<boolean> {
  const stored = await query(
    database,
    sql`insert into ${name(table)}
       (advisory_id, kind, stream, consumer, stream_seq, deliveries, reason, advised_at,
        message_subject, message_headers, message_body, message_stored_at)
     values (${advisory.id}, ${kind}, ${advisory.stream}, ${advisory.consumer},
       ${advisory.stream_seq}, ${advisory.deliveries ?? null}, ${advisory.reason ?? null},
       ${advisory.timestamp}, ${copy ? storable(copy.subject) : null},
       ${copy ? JSON.stringify(headersOf(copy)) : null}, ${copy ? Buffer.from(copy.data) : null},
       ${copy?.time ?? null})
     on conflict (advisory_id) do nothing
     returning 1`,
  );
  return stored.length > 0;
}

function headersOf({ header }: StoredMsg): Record<string, string[]> {
  return Object.fromEntries(
    header.keys().map((name) => [storable(name), header.values(name).map(storable)]),
  );
}

// A NATS header may contain any text, but PostgreSQL can't store a NUL.
function storable(text: string): string {
  return text.replaceAll("\0", "\ufffd").toWellFormed();
}
