import type { DeadLetter } from "../operators/dead_letters.ts";
import { deadRows, type DeadTable } from "../operators/dead_rows.ts";
import type { Operation } from "../operators/operations.ts";
import { recordsOperation } from "../operators/record_operation.ts";
import type { SendBack } from "../operators/send_back.ts";
import { type Database, isUnavailable, query } from "../postgres/postgres.ts";
import { listOf, name, sql } from "../postgres/sql.ts";
import { reasonOf } from "../process/reason.ts";
import type { DeadLetters, Inbox, InboxEvent } from "./inbox.ts";

// The dead letters of the inboxes that share a table: messages that JetStream no longer delivers.

const layer = "advisory";

export function deadMessageTable(name: string): DeadTable {
  return {
    layer,
    name,
    id: "dlq_id",
    idType: "bigint",
    isDead: "operation_id is null",
    error: "coalesce(reason, kind)",
    since: "advised_at",
    columns: `deliveries as attempts, stream, consumer, stream_seq, message_subject as subject,
       message_headers as headers, message_body as body`,
  };
}

export function deadMessages(
  { database, table }: DeadLetters,
  inboxes: Inbox<InboxEvent>[],
): SendBack {
  const { find, findByIds, ...rows } = deadRows<DeadMessage>(database, deadMessageTable(table));
  return {
    layer,
    find: async (wanted) => (await find(wanted)).map((row) => toDeadLetter(row, inboxes)),
    findByIds: async (ids) => (await findByIds(ids)).map((row) => toDeadLetter(row, inboxes)),
    ...rows,
    sendBack: async (dead, operation) => {
      const { done, refused } = await receiveAgain(
        await findByIds(dead.map(({ id }) => id)),
        inboxes,
      );
      return { moved: await markReceived(database, table, done, operation), refused };
    },
  };
}

interface DeadMessage {
  id: string;
  error: string;
  since: string;
  age_seconds: number;
  attempts: number | null;
  stream: string;
  consumer: string;
  stream_seq: number;
  subject: string | null;
  headers: Record<string, string[]> | null;
  body: Uint8Array | null;
}

type Copy =
  | { event: InboxEvent; inbox: Inbox<InboxEvent> }
  | { problem: string };

// The stream and the consumer of an old message may have other names by now, so the first inbox reads
// what no other one does.
function readCopy(
  { stream, consumer, subject, headers, body }: DeadMessage,
  inboxes: Inbox<InboxEvent>[],
): Copy {
  if (!body) {
    return { problem: "the stream no longer had the message when the advisory was captured" };
  }
  const ofStream = inboxes.filter((inbox) => inbox.stream.name === stream);
  const inbox = ofStream.find((inbox) => inbox.consumer.durable === consumer) ?? ofStream[0] ??
    inboxes[0];
  if (!inbox) return { problem: "no inbox reads it" };
  const header = (name: string) => headers?.[name]?.[0];
  try {
    return { event: inbox.decode({ subject: subject ?? "", data: body, header }), inbox };
  } catch (error) {
    return { problem: reasonOf(error) };
  }
}

function toDeadLetter(dead: DeadMessage, inboxes: Inbox<InboxEvent>[]): DeadLetter {
  const { id, error, since, age_seconds, attempts, stream_seq, headers, body } = dead;
  const row = { layer, id, error, since, age_seconds, attempts };
  const copy = readCopy(dead, inboxes);
  if ("event" in copy) {
    return { ...row, event_id: copy.event.event_id, payload: copy.event.payload };
  }
  return {
    ...row,
    event_id: headers?.["Nats-Msg-Id"]?.[0] ?? null,
    payload: {
      unreadable: copy.problem,
      stream_seq,
      headers,
      body_base64: body && new Uint8Array(body).toBase64(),
    },
  };
}

interface Received {
  id: string;
  eventId: string;
}

// Receives the copies like any other message, so an event received in the meantime is a duplicate
// and has no effect. The rows are marked afterwards. If the process dies in between, doing both
// again is safe.
async function receiveAgain(
  rows: DeadMessage[],
  inboxes: Inbox<InboxEvent>[],
): Promise<{ done: Received[]; refused: Map<string, string> }> {
  const refused = new Map<string, string>();
  const done: Received[] = [];
  for (const row of rows) {
    const copy = readCopy(row, inboxes);
    if ("problem" in copy) {
      refused.set(row.id, copy.problem);
      continue;
    }
    try {
      await copy.inbox.store([copy.event]);
      done.push({ id: row.id, eventId: copy.event.event_id });
    } catch (error) {
      if (isUnavailable(error)) throw error;
      refused.set(row.id, reasonOf(error));
    }
  }
  return { done, refused };
}

async function markReceived(
  database: Database,
  table: string,
  done: Received[],
  operation: Operation,
): Promise<string[]> {
  const ids = listOf(done.map(({ id }) => id));
  const eventIds = listOf(done.map(({ eventId }) => eventId));
  const recorded = {
    ...{ kind: "SEND_BACK", layer, of: "marked" },
    item: sql`'dlq_id', dlq_id, 'event_id', event_id, 'from', kind, 'error', reason`,
  };
  const rows = await query<{ id: string }>(
    database,
    sql`with done as (
       select dlq_id, event_id
       from unnest(${ids}::bigint[], ${eventIds}::uuid[]) as done (dlq_id, event_id)
     ), marked as (
       update ${name(table)} dead
       set operation_id = ${operation.id}
       from done
       where dead.dlq_id = done.dlq_id
         and dead.operation_id is null
       returning dead.dlq_id, dead.kind, dead.reason, done.event_id
     ), ${recordsOperation(operation, recorded)}
     select dlq_id::text as id from marked`,
  );
  return rows.map(({ id }) => id);
}
