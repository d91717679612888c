import type { JetStreamManager, Msg, NatsConnection } from "nats";
import type { Inbox } from "@kenri/shared/inbox/inbox.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import { listOf } from "@kenri/shared/postgres/sql.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { readCheck, type Receipt, subjectOfChecks } from "@kenri/proto/notification/receipts.ts";
import { aborted } from "@kenri/shared/process/signals.ts";
import type { EventInboxes } from "./consume_events.ts";
import type { Notification } from "./notification.ts";

// Answers the reconciliation over NATS: which of the given events were not received. One of the
// replicas answers each request.

export interface AnswerParts {
  database: Database;
  link: NatsLink;
  log: Log;
}

export interface AnswerOptions {
  inboxes: EventInboxes;
  retention: { days: number };
}

export async function answerChecks(
  parts: AnswerParts,
  options: AnswerOptions,
  stop: AbortSignal,
): Promise<void> {
  const [{ stream, consumer }] = options.inboxes;
  for await (const { connection, signal } of parts.link.sessions(stop)) {
    const subscription = connection.subscribe(subjectOfChecks(stream.subjects[0]), {
      queue: consumer.durable,
      callback: (error, message) => {
        if (error) parts.log.warn("Reconciliation requests can't be received: {error}", { error });
        else void answer(parts, options, connection, message);
      },
    });
    await aborted(signal);
    subscription.unsubscribe();
  }
}

async function answer(
  { database, link, log }: AnswerParts,
  { inboxes, retention }: AnswerOptions,
  connection: NatsConnection,
  message: Msg,
): Promise<void> {
  try {
    const ids = readCheck(message.data);
    const manager = await connection.jetstreamManager();
    // Another stream has sequences of its own. The consumers come first: what they have delivered by
    // now may be found in the tables below.
    const [{ stream }] = inboxes;
    const ofStream = inboxes.filter((inbox) => inbox.stream.name === stream.name);
    const progress = await Promise.all(ofStream.map((inbox) => progressOf(manager, inbox, link)));
    const [unreceived, since] = await Promise.all([
      findUnreceived(database, ids),
      rememberedSince(database, retention.days),
    ]);
    const known = progress.filter((each) => each !== undefined);
    const delivered = furthestBehind(known.map(({ delivered }) => delivered));
    const settled = furthestBehind(known.map(({ settled }) => settled));
    const receipt: Receipt = {
      missing: unreceived.filter(({ dead }) => !dead).map(({ event_id }) => event_id),
      dead: unreceived.filter(({ dead }) => dead).map(({ event_id }) => event_id),
      delivered_up_to: delivered.upTo,
      undelivered: delivered.left,
      settled_up_to: settled.upTo,
      unsettled: settled.left,
      remembered_since: since,
    };
    message.respond(JSON.stringify(receipt));
  } catch (error) {
    const reason = reasonOf(error);
    log.warn("A reconciliation request can't be answered: {reason}", { reason });
    if (!connection.isClosed()) message.respond(JSON.stringify({ error: reason }));
  }
}

interface Progress {
  delivered: Position;
  settled: Position;
}

interface Position {
  upTo: number; // a sequence of the stream
  left: number; // number of messages after it
}

// Undefined for an inbox that waits for its subject and its consumer: the stream has none of its
// events.
async function progressOf(
  manager: JetStreamManager,
  { name, mayWait, stream, consumer }: Inbox<Notification>,
  { unprovisioned }: NatsLink,
): Promise<Progress | undefined> {
  try {
    const info = await manager.consumers.info(stream.name, consumer.durable);
    return {
      delivered: { upTo: info.delivered.stream_seq, left: info.num_pending },
      settled: { upTo: info.ack_floor.stream_seq, left: info.num_ack_pending },
    };
  } catch (error) {
    if (mayWait && unprovisioned.has(name)) return undefined;
    throw error;
  }
}

// The position of all inboxes together. One that has nothing left does not hold it back: its last
// message may be far from the end of the stream.
function furthestBehind(positions: Position[]): Position {
  const behind = positions.filter(({ left }) => left > 0);
  const left = behind.reduce((sum, { left }) => sum + left, 0);
  const upTo = left > 0
    ? Math.min(...behind.map(({ upTo }) => upTo))
    : Math.max(...positions.map(({ upTo }) => upTo));
  return { upTo, left };
}

interface Unreceived extends Record<string, unknown> {
  event_id: string;
  dead: boolean;
}

function findUnreceived(database: Database, ids: string[]): Promise<Unreceived[]> {
  return query<Unreceived>(
    database,
    `select wanted.event_id, exists (
         select from notification_nats_dlq captured
         where captured.operation_id is null
           and captured.message_headers->'Nats-Msg-Id'->>0 = wanted.event_id::text) as dead
     from unnest($1::uuid[]) as wanted (event_id)
     where not exists (
       select from processed_events event where event.event_id = wanted.event_id)`,
    [listOf(ids)],
  );
}

// The service remembers every event that occurred after this time. The hour allows for clocks that
// differ.
async function rememberedSince(database: Database, days: number): Promise<string> {
  const [found] = await query<{ since: string }>(
    database,
    `select ${utc("now() - make_interval(days => $1) + interval '1 hour'")} as since`,
    [days],
  );
  return found?.since ?? "";
}
