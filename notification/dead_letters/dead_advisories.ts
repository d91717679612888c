import type { DeadLetter } from "@kenri/shared/operators/dead_letters.ts";
import { deadRows, type DeadTable } from "@kenri/shared/operators/dead_rows.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import { listOf } from "@kenri/shared/queue/leases.ts";
import type { Operation } from "@kenri/shared/operators/operations.ts";
import { type Database, isUnavailable, query } from "@kenri/shared/postgres/postgres.ts";
import type { SendBack, SentBack } from "@kenri/shared/operators/send_back.ts";
import type { Wakeup } from "@kenri/shared/process/signals.ts";
import { type Notification, readNotification } from "../notification.ts";
import { receiveEvents } from "../receive_events.ts";

// The dead letters of the consumer: messages that JetStream no longer delivers.

export interface AdvisoryParts {
  database: Database;
  wakeDelivery: Wakeup;
  predecessorWaitMs: number;
}

export function deadAdvisories(parts: AdvisoryParts): SendBack {
  const { find, findByIds, ...rows } = deadRows<AdvisoryRow>(
    parts.database,
    notificationNatsDlq,
  );
  return {
    layer: notificationNatsDlq.layer,
    find: async (wanted) => (await find(wanted)).map(toDeadLetter),
    findByIds: async (ids) => (await findByIds(ids)).map(toDeadLetter),
    ...rows,
    sendBack: async (dead, operation) =>
      receiveAgain(parts, await findByIds(dead.map(({ id }) => id)), operation),
  };
}

interface AdvisoryRow {
  id: string;
  error: string;
  since: string;
  age_seconds: number;
  attempts: number | null;
  stream_seq: number;
  headers: Record<string, string[]> | null;
  body: Uint8Array | null;
}

export const notificationNatsDlq: DeadTable = {
  layer: "advisory",
  name: "notification_nats_dlq",
  id: "dlq_id",
  idType: "bigint",
  isDead: "operation_id is null",
  error: "coalesce(reason, kind)",
  since: "advised_at",
  columns: "deliveries as attempts, stream_seq, message_headers as headers, message_body as body",
};

type Copy =
  | { notification: Notification }
  | { problem: string };

function readCopy(body: Uint8Array | null): Copy {
  if (!body) {
    return { problem: "the stream no longer had the message when the advisory was captured" };
  }
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
  return { layer: notificationNatsDlq.layer, ...row, event_id, payload };
}

// Receives the copies like any other message, so an event received in the meantime is a duplicate
// and has no effect. The rows are marked afterwards. If the process dies in between, doing both
// again is safe.
async function receiveAgain(
  { database, wakeDelivery, predecessorWaitMs }: AdvisoryParts,
  rows: AdvisoryRow[],
  operation: Operation,
): Promise<SentBack> {
  const refused = new Map<string, string>();
  const done: { id: string; eventId: string }[] = [];
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
  if (done.length > 0) wakeDelivery.trigger();
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
