import type { Msg, NatsConnection } from "nats";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import type { NatsLink } from "@kenri/shared/nats/link.ts";
import type { WantedStream } from "@kenri/shared/nats/streams.ts";
import { listOf } from "@kenri/shared/postgres/sql.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { type Database, query, utc } from "@kenri/shared/postgres/postgres.ts";
import { readCheck, type Receipt, subjectOfChecks } from "@kenri/proto/notification/receipts.ts";
import { aborted } from "@kenri/shared/process/signals.ts";

// Answers the reconciliation over NATS: which of the given events were not received. One of the
// replicas answers each request.

export interface AnswerParts {
  database: Database;
  link: NatsLink;
  log: Log;
}

export interface AnswerOptions {
  stream: WantedStream;
  consumer: { durable: string };
  retention: { days: number };
}

export async function answerChecks(
  parts: AnswerParts,
  options: AnswerOptions,
  stop: AbortSignal,
): Promise<void> {
  for await (const { connection, signal } of parts.link.sessions(stop)) {
    const subscription = connection.subscribe(subjectOfChecks(options.stream.subjects[0]), {
      queue: options.consumer.durable,
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
  { database, log }: AnswerParts,
  { stream, consumer, retention }: AnswerOptions,
  connection: NatsConnection,
  message: Msg,
): Promise<void> {
  try {
    const ids = readCheck(message.data);
    const manager = await connection.jetstreamManager();
    // The consumer comes first: what it has delivered by now may be found in the tables below.
    const { delivered, num_pending, ack_floor, num_ack_pending } = await manager.consumers
      .info(stream.name, consumer.durable);
    const [unreceived, since] = await Promise.all([
      findUnreceived(database, ids),
      rememberedSince(database, retention.days),
    ]);
    const receipt: Receipt = {
      missing: unreceived.filter(({ dead }) => !dead).map(({ event_id }) => event_id),
      dead: unreceived.filter(({ dead }) => dead).map(({ event_id }) => event_id),
      delivered_up_to: delivered.stream_seq,
      undelivered: num_pending,
      settled_up_to: ack_floor.stream_seq,
      unsettled: num_ack_pending,
      remembered_since: since,
    };
    message.respond(JSON.stringify(receipt));
  } catch (error) {
    const reason = reasonOf(error);
    log.warn("A reconciliation request can't be answered: {reason}", { reason });
    if (!connection.isClosed()) message.respond(JSON.stringify({ error: reason }));
  }
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
