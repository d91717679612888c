import { isKeyOf, keyPrefixOf } from "@kenri/proto/entitlement/aggregate_key.ts";
import { matchmakingKeyPrefixOf } from "@kenri/proto/matchmaking/aggregate_key.ts";
import { pointsKeyPrefixOf } from "@kenri/proto/points/aggregate_key.ts";
import { lockNames } from "@kenri/shared/commands/locks.ts";
import type { Inbox } from "@kenri/shared/inbox/inbox.ts";
import {
  type Erased,
  eraseUserWith,
  type Erasure,
  recordErasure,
} from "@kenri/shared/operators/erasure.ts";
import { unavailable } from "@kenri/shared/http/errors.ts";
import { listOf, sql } from "@kenri/shared/postgres/sql.ts";
import {
  type Database,
  query,
  type Transaction,
  transaction,
} from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import type { Notification } from "../notification.ts";
import { keyOf } from "../key_of.ts";
import { countUnsentToPeers, eraseFromPeers, findMatches } from "./erase_peers.ts";
import { erasedPayload } from "./erased_payload.ts";
import { countOrders, eraseOrders, lockOrders } from "./orders/erase_orders.ts";

// Erases a user from notifications, dead letters, the copies of dead messages, orders and endpoints.

type Decode = Inbox<Notification>["decode"];

export function eraseUser(database: Database, decode: Decode): Handler {
  return eraseUserWith((erasure) => transaction(database, (tx) => erase(tx, erasure, decode)));
}

async function erase(tx: Transaction, erasure: Erasure, decode: Decode): Promise<Erased> {
  await lockNames(tx, ["erasures"]); // two peers have rows of each other
  await lockDeadLetters(tx, erasure.userId);
  const sending = await lockOrders(tx, erasure.userId);
  const { waiting: unsent, notifications } = await countNotifications(tx, erasure.userId);
  const matches = await findMatches(tx, erasure.userId);
  const waiting = unsent + sending + await countUnsentToPeers(tx, erasure.userId, matches);
  if (waiting > 0) return { waiting, rows: {} };
  const copies = (await findCopies(tx, erasure.userId)).filter((copy) =>
    isOf(copy, erasure.userId, decode)
  );
  const deadLetters = await countDeadLetters(tx, erasure.userId);
  const rows = {
    notifications,
    notification_dlq: deadLetters,
    notification_nats_dlq: copies.length,
    ...await countOrders(tx, erasure.userId),
  };
  const isKnown = Object.values(rows).some((number) => number > 0);
  if (erasure.dryRun || !isKnown) return { waiting, rows };
  await recordErasure(tx, erasure, rows);
  await eraseFromPeers(tx, erasure, matches);
  await eraseNotifications(tx, erasure);
  await eraseDeadLetters(tx, erasure);
  await dropCopies(tx, erasure, copies);
  await eraseOrders(tx, erasure);
  await refuseWhenReceived(tx, erasure.userId);
  return { waiting, rows };
}

// Sending a notification back takes its dead letter. So it waits for this lock, and then sends the
// notification back without the user.
async function lockDeadLetters(tx: Transaction, userId: string): Promise<void> {
  await query(
    tx,
    `select
     from notification_dlq
     where payload_json->>'user_id' = $1
     order by dlq_id
     for update`,
    [userId],
  );
}

async function countNotifications(
  tx: Transaction,
  userId: string,
): Promise<{ waiting: number; notifications: number }> {
  const [counted] = await query<{ waiting: number; notifications: number }>(
    tx,
    `select count(*) filter (where unfinished) as waiting, count(*) as notifications
     from notifications
     where user_id = $1`,
    [userId],
  );
  return counted ?? { waiting: 0, notifications: 0 };
}

async function eraseNotifications(
  tx: Transaction,
  { userId, pseudonym }: Erasure,
): Promise<void> {
  await query(
    tx,
    sql`update notifications
     set user_id = ${pseudonym},
       aggregate_key = coalesce(${keyOf(sql`payload_json`, sql`${pseudonym}`)},
         aggregate_key_of(${pseudonym}, '')),
       payload_json = ${erasedPayload(sql`payload_json`, pseudonym)}
     where user_id = ${userId}
       and not unfinished -- those that just arrived belong to changes after the erasure`,
  );
}

async function countDeadLetters(tx: Transaction, userId: string): Promise<number> {
  const [counted] = await query<{ count: number }>(
    tx,
    `select count(*) as count from notification_dlq where payload_json->>'user_id' = $1`,
    [userId],
  );
  return counted?.count ?? 0;
}

// Dead letters outlive their notifications, so they are erased separately.
async function eraseDeadLetters(tx: Transaction, { userId, pseudonym }: Erasure): Promise<void> {
  await query(
    tx,
    sql`update notification_dlq
     set payload_json = ${erasedPayload(sql`payload_json`, pseudonym)}
     where payload_json->>'user_id' = ${userId}`,
  );
}

interface Copy {
  dlq_id: string;
  subject: string | null;
  body: Uint8Array | null;
  key: string | null; // the aggregate key in the headers of the message
}

// Protobuf keeps a text as its bytes, so this finds few copies of other users. isOf decides.
function findCopies(tx: Transaction, userId: string): Promise<Copy[]> {
  return query<Copy & Record<string, unknown>>(
    tx,
    `select dlq_id::text, message_subject as subject, message_body as body, message_headers->'aggregate_key'->>0 as key
     from notification_nats_dlq
     where position(convert_to($1, 'UTF8') in message_body) > 0
       or message_headers->'aggregate_key'->>0 ^@ any($2::text[])`,
    [userId, [keyPrefixOf(userId), ...otherPrefixesOf(userId)]],
  );
}

const otherPrefixesOf = (userId: string) => [
  pointsKeyPrefixOf(userId),
  matchmakingKeyPrefixOf(userId),
];

function isOf({ subject, body, key }: Copy, userId: string, decode: Decode): boolean {
  try {
    const message = { subject: subject ?? "", header: () => undefined };
    if (body) return namesUser(decode({ ...message, data: body }), userId);
  } catch {
    // A copy that can't be read and has no key may contain the user anywhere.
    if (key === null) return true;
  }
  return key !== null &&
    (isKeyOf(userId, key) || otherPrefixesOf(userId).some((prefix) => key.startsWith(prefix)));
}

function namesUser({ user_id, payload }: Notification, userId: string): boolean {
  const peers = "peer_user_ids" in payload ? payload.peer_user_ids : [];
  return user_id === userId || [peers].flat().includes(userId);
}

// Marks the event as received. Otherwise the reconciliation would republish it with the user in it.
async function dropCopies(
  tx: Transaction,
  { operationId }: Erasure,
  copies: Copy[],
): Promise<void> {
  await query(
    tx,
    `with dropped as (
       update notification_nats_dlq copy
       set message_body = null, message_headers = null,
         operation_id = coalesce(copy.operation_id, $2)
       from (select * from notification_nats_dlq where dlq_id = any($1::bigint[])) as before
       where copy.dlq_id = before.dlq_id
       returning before.message_headers->'Nats-Msg-Id'->>0 as event_id
     )
     insert into processed_events (event_id)
     select event_id::uuid
     from dropped
     where event_id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
     on conflict do nothing`,
    [listOf(copies.map(({ dlq_id }) => dlq_id)), operationId],
  );
}

// If a copy was sent back at the same time, its event either is received by now and found here, or
// will be found to be a duplicate.
async function refuseWhenReceived(tx: Transaction, userId: string): Promise<void> {
  const { waiting } = await countNotifications(tx, userId);
  const { outbox_orders: orders = 0 } = await countOrders(tx, userId);
  if (waiting + orders > 0) {
    throw unavailable("an event of this user arrived in the meantime, try again");
  }
}
