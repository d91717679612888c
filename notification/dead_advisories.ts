import { z } from "@hono/zod-openapi";
import type { DeadLetter, ErrorCount } from "@kenri/shared/dead_letters";
import { reasonOf } from "@kenri/shared/errors";
import { listOf } from "@kenri/shared/leases";
import type { Operation } from "@kenri/shared/operations";
import { type Database, isUnavailable, query, utc } from "@kenri/shared/postgres";
import type { SendBack, SentBack } from "@kenri/shared/send_back";
import type { Bell } from "@kenri/shared/signals";
import { type Notification, readNotification } from "./notification.ts";
import { receiveEvents } from "./receive_events.ts";

// The dead letters of the consumer: messages that JetStream does not deliver any more.

export interface AdvisoryParts {
  database: Database;
  received: Bell;
  predecessorWaitMs: number;
}

export function deadAdvisories(parts: AdvisoryParts): SendBack {
  const { database } = parts;
  return {
    layer: "advisory",
    idSchema: z.string().regex(/^[1-9]\d{0,17}$/),
    find: async ({ after, error, limit }) => {
      const rows = error === undefined
        ? await findDead(database, after ?? "0", limit)
        : await findDeadOfError(database, after ?? "0", limit, error);
      return rows.map(toDeadLetter);
    },
    findByIds: async (ids) => (await findDeadByIds(database, ids)).map(toDeadLetter),
    countByError: (limit) => countByError(database, limit),
    sendBack: (dead, operation) => receiveAgain(parts, dead, operation),
  };
}

interface AdvisoryRow extends Record<string, unknown> {
  id: string;
  error: string;
  since: string;
  age_seconds: number;
  attempts: number | null;
  stream_seq: number;
  headers: Record<string, string[]> | null;
  body: Uint8Array | null;
}

const columns = `dlq_id::text as id, coalesce(reason, kind) as error, deliveries as attempts,
       stream_seq, message_headers as headers, message_body as body,
       ${utc("advised_at")} as since,
       extract(epoch from now() - advised_at)::float8 as age_seconds`;

function findDead(database: Database, after: string, limit: number): Promise<AdvisoryRow[]> {
  return query<AdvisoryRow>(
    database,
    `select ${columns}
     from notification_nats_dlq
     where operation_id is null
       and dlq_id > $1
     order by dlq_id
     limit $2`,
    [after, limit],
  );
}

function findDeadOfError(
  database: Database,
  after: string,
  limit: number,
  error: string,
): Promise<AdvisoryRow[]> {
  return query<AdvisoryRow>(
    database,
    `select ${columns}
     from notification_nats_dlq
     where operation_id is null
       and dlq_id > $1
       and coalesce(reason, kind) = $3
     order by dlq_id
     limit $2`,
    [after, limit, error],
  );
}

function findDeadByIds(database: Database, ids: string[]): Promise<AdvisoryRow[]> {
  return query<AdvisoryRow>(
    database,
    `select ${columns}
     from notification_nats_dlq
     where operation_id is null
       and dlq_id = any($1::bigint[])
     order by dlq_id`,
    [listOf(ids)],
  );
}

function countByError(database: Database, limit: number): Promise<ErrorCount[]> {
  return query<ErrorCount>(
    database,
    `select error, count(*) as count, ${utc("min(advised_at)")} as oldest
     from (
       select coalesce(reason, kind) as error, advised_at
       from notification_nats_dlq
       where operation_id is null
       order by dlq_id
       limit $1
     ) as dead
     group by error
     order by count desc, error`,
    [limit],
  );
}

type Copy =
  | { notification: Notification }
  | { problem: string };

function readCopy(body: Uint8Array | null): Copy {
  if (!body) return { problem: "the stream had dropped the message when it was captured" };
  try {
    return { notification: readNotification(body) };
  } catch (error) {
    return { problem: reasonOf(error) };
  }
}

function toDeadLetter({ body, headers, stream_seq, ...row }: AdvisoryRow): DeadLetter {
  const copy = readCopy(body);
  const event_id = "notification" in copy
    ? copy.notification.event_id
    : headers?.["Nats-Msg-Id"]?.[0] ?? null;
  const payload = "notification" in copy ? copy.notification.payload : {
    unreadable: copy.problem,
    stream_seq,
    headers,
    body_base64: body && new Uint8Array(body).toBase64(),
  };
  return { layer: "advisory", ...row, event_id, payload };
}

// Received as any other message: what was received meanwhile is a duplicate and changes nothing. Only
// then the row is marked, so whatever ends in between is done again without a second effect.
async function receiveAgain(
  { database, received, predecessorWaitMs }: AdvisoryParts,
  dead: DeadLetter[],
  operation: Operation,
): Promise<SentBack> {
  const refused = new Map<string, string>();
  const done: { id: string; eventId: string }[] = [];
  const rows = await findDeadByIds(database, dead.map(({ id }) => id));
  for (const { id, body } of rows) {
    const copy = readCopy(body);
    if ("problem" in copy) {
      refused.set(id, copy.problem);
      continue;
    }
    const { notification } = copy;
    try {
      await receiveEvents(database, [notification], predecessorWaitMs);
      done.push({ id, eventId: notification.event_id });
    } catch (error) {
      if (isUnavailable(error)) throw error;
      refused.set(id, reasonOf(error));
    }
  }
  if (done.length > 0) received.ring();
  return { moved: await markReceived(database, done, operation), refused };
}

async function markReceived(
  database: Database,
  done: { id: string; eventId: string }[],
  { id, who, reason }: Operation,
): Promise<string[]> {
  const rows = await query<{ id: string }>(
    database,
    `with done as (
       select dlq_id, event_id
       from unnest($1::bigint[], $2::uuid[]) as done (dlq_id, event_id)
     ), marked as (
       update notification_nats_dlq dead
       set operation_id = $3
       from done
       where dead.dlq_id = done.dlq_id
         and dead.operation_id is null
       returning dead.dlq_id, dead.kind, dead.reason, done.event_id
     ), operation as (
       insert into operations (operation_id, kind, layer, who, reason, items)
       select $3, 'SEND_BACK', 'advisory', $4, $5,
         jsonb_agg(jsonb_build_object(
           'dlq_id', dlq_id, 'event_id', event_id, 'from', kind, 'error', reason))
       from marked
       having count(*) > 0
     )
     select dlq_id::text as id from marked`,
    [
      listOf(done.map(({ id }) => id)),
      listOf(done.map(({ eventId }) => eventId)),
      id,
      who,
      reason,
    ],
  );
  return rows.map(({ id }) => id);
}
