import type { NewLease, Written } from "@kenri/shared/queue/handover.ts";
import { leasedRow } from "@kenri/shared/queue/leased_row.ts";
import { leaseColumns, leaseValues } from "@kenri/shared/queue/new_lease.ts";
import { listOf, nothing, sql } from "@kenri/shared/postgres/sql.ts";
import { type Database, query, type Session } from "@kenri/shared/postgres/postgres.ts";
import { tracing } from "@kenri/shared/telemetry/tracing.ts";
import {
  anyEndpoint,
  anyFannedOut,
  endsWaitsOfOrders,
  FanOut,
  fansOut,
  unlessEndpoints,
} from "./endpoints/fan_out.ts";
import { type NotificationContent, type NotificationRow, notifications } from "./deliveries.ts";
import type { Notification } from "./notification.ts";

export interface ReceiveOptions {
  predecessorWaitMs: number;
  fanOut?: FanOut;
  wakeOrders?(): void; // orders wait to be sent
}

// What was stored of a batch. Null stands for all of it: usually no event was known before, and each is
// leased.
interface Stored {
  new_ids: string[] | null;
  leased_ids: string[] | null;
  last_locked: number; // in seconds since 1970
  has_endpoints?: boolean; // absent: no
  has_orders?: boolean;
}

// Stores a batch of received events in one statement: processed_events shows which were received
// before, and only the others become notifications, and orders for endpoints. Returns for each event
// whether it was new. With a lease, the notifications are leased to the delivery of this process,
// which receives them by handover.
export async function receiveEvents(
  database: Database,
  received: Notification[],
  { predecessorWaitMs, fanOut = new FanOut(), wakeOrders }: ReceiveOptions,
  lease?: NewLease,
): Promise<Written<NotificationRow, boolean[]>> {
  const session = await database.connect();
  try {
    // Both are sent at once; the second begins when the first is committed.
    const store = (withOrders: boolean) =>
      Promise.all([
        storeNew(session, received, { predecessorWaitMs, withOrders }, lease),
        endWaits(session, received, withOrders),
      ]);
    const expected = fanOut.isOn; // other batches change it meanwhile
    let [stored, ended] = await store(expected);
    if (stored.new_ids?.length === 0 && !expected) { // all are duplicates, or an endpoint exists now
      [stored, ended] = await store(true);
    }
    if (stored.new_ids?.length !== 0) fanOut.isOn = stored.has_endpoints ?? false;
    if (stored.has_orders) wakeOrders?.();
    const isNew = isIn(stored.new_ids);
    const isLeased = isIn(stored.leased_ids);
    const claimed = { claimedAt: performance.now(), lastLocked: stored.last_locked };
    const leased = lease
      ? received.filter(isLeased).sort(byVersion)
        .map((event) => rowOf(event, lease.token, claimed))
      : [];
    return {
      result: received.map(isNew),
      leased,
      othersWait: leased.length < (stored.new_ids ?? received).length || ended > 0,
    };
  } finally {
    session.release();
  }
}

function isIn(ids: string[] | null): (event: Notification) => boolean {
  if (ids === null) return () => true;
  const known = new Set(ids);
  return ({ event_id }) => known.has(event_id);
}

const byVersion = (a: Notification, b: Notification) => a.version - b.version;

// The row as a claim would return it. Its content is in memory already.
function rowOf(
  event: Notification,
  token: string,
  { claimedAt, lastLocked }: { claimedAt: number; lastLocked: number },
): NotificationRow {
  const { event_id, user_id, aggregate_key, type, occurred_at, payload, traceparent } = event;
  const row = {
    ...{ id: event_id, aggregate_key, attempt_count: 0, taken_over: false },
    ...{ event_id, user_id, type, payload },
    traceparent: traceparent ?? null,
    age_seconds: lastLocked - Date.parse(occurred_at) / 1_000,
  };
  return leasedRow<NotificationContent>(row, token, claimedAt);
}

// Replicas share the stream, so version 2 may be stored before version 1. It then waits for its
// predecessor, but not for ever, because the predecessor may have been deleted long ago.
//
// A notification has the id of its event. So if the database is restored from a backup and the
// event is received again, the send has the same idempotency key as the earlier one.
async function storeNew(
  session: Session,
  received: Notification[],
  { predecessorWaitMs, withOrders }: { predecessorWaitMs: number; withOrders: boolean },
  lease: NewLease | undefined,
): Promise<Stored> {
  const [stored] = await query<Stored & Record<string, unknown>>(
    session,
    sql`with received as materialized (
  select (payload->>'event_id')::uuid as event_id,
    payload->>'user_id' as user_id, aggregate_key, version,
    payload->>'event_type' as type, (payload->>'occurred_at')::timestamptz as occurred_at,
    payload, traceparent
  from rows from (
    unnest(${received.map(({ aggregate_key }) => aggregate_key)}::text[]),
    unnest(${listOf(received.map(({ version }) => version))}::bigint[]),
    jsonb_array_elements(${JSON.stringify(received.map(({ payload }) => payload))}),
    unnest(${tracing ? received.map(({ traceparent }) => traceparent) : []}::text[])
  ) as message (aggregate_key, version, payload, traceparent)
), new_event as (
  insert into processed_events (event_id)
  select event_id from received${withOrders ? nothing : unlessEndpoints} order by event_id
  on conflict (event_id) do nothing
  returning event_id
), new_notification as (
  select received.*, version > 1
    and not exists (
      select from notifications predecessor
      where predecessor.aggregate_key = received.aggregate_key
        and predecessor.version = received.version - 1)
    and (aggregate_key, version - 1) not in (select aggregate_key, version from received)
    as awaits_predecessor
  from received
  -- PostgreSQL evaluates this condition with a hash, which it would not do for a join.
  where (event_id in (select event_id from new_event)) is true
), ${withOrders ? fansOut(predecessorWaitMs) : nothing}stored as (
  insert into notifications
    (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at,
     payload_json, traceparent, awaits_predecessor, next_retry_at, ${leaseColumns})
  select event_id, event_id, user_id, aggregate_key, version, type, occurred_at,
    payload, traceparent, awaits_predecessor,
    case when awaits_predecessor
      then now() + make_interval(secs => ${predecessorWaitMs}::float8 / 1000) end,
    ${leaseValues}
  from new_notification
  ${notifications.newLease(newRow, lease)}
  returning event_id, claim_token, locked_at
)
select case when count(*) < ${received.length}
    then coalesce(array_agg(event_id::text), '{}') end as new_ids,
  case when count(claim_token) < ${received.length}
    then coalesce(array_agg(event_id::text) filter (where claim_token is not null), '{}')
    end as leased_ids,
  extract(epoch from max(locked_at))::float8 as last_locked${
      withOrders
        ? sql`,
  ${anyEndpoint} as has_endpoints, ${anyFannedOut} as has_orders`
        : nothing
    }
from stored`,
  );
  return stored as Stored;
}

const newRow = {
  key: sql`new_notification.aggregate_key`,
  position: sql`new_notification.version`,
  where:
    sql`aggregate_key not in (select aggregate_key from new_notification where awaits_predecessor)`,
};

// Ends the waits of versions whose predecessor is stored now. This comes after the commit: if two
// replicas store two successive versions at the same time, the later commit sees both. It includes
// duplicates, because the replica that stored them may have crashed before this statement. Nearly
// always no row waits, because a claim ends the wait. Rows are locked in one order, because
// replicas may need the same rows.
async function endWaits(
  session: Session,
  received: Notification[],
  withOrders: boolean,
): Promise<number> {
  const ended = await query(
    session,
    sql`with received as (
  select aggregate_key, version
  from unnest(
    ${received.map(({ aggregate_key }) => aggregate_key)}::text[],
    ${listOf(received.map(({ version }) => version))}::bigint[]
  ) as event (aggregate_key, version)
), over as (
  select waiting.notification_id
  from (
    select aggregate_key, version from received
    union
    select aggregate_key, version + 1 from received
  ) as candidate
  join notifications waiting
    on waiting.aggregate_key = candidate.aggregate_key
    and waiting.version = candidate.version
  where exists (select from notifications where awaits_predecessor) -- usually none, then nothing else is read
    and waiting.awaits_predecessor
    and exists (
      select from notifications predecessor
      where predecessor.aggregate_key = waiting.aggregate_key
        and predecessor.version = waiting.version - 1)
  order by waiting.notification_id
  for update of waiting
)${withOrders ? endsWaitsOfOrders : nothing}
update notifications waiting
set awaits_predecessor = false, next_retry_at = null
from over
where waiting.notification_id = over.notification_id
returning 1`,
  );
  return ended.length;
}
