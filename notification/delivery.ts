import type { WorkerOptions } from "@kenri/shared/process/settings.ts";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import type { Outcome, Settlement } from "@kenri/shared/process/job.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import { claimDue, claimRepeatedly } from "@kenri/shared/queue/claims.ts";
import {
  extendLeases,
  givesUp,
  type Lease,
  type LeasedRow,
  type LeasedTable,
  leaseEnds,
  listOf,
  settleEach,
  settleRows,
} from "@kenri/shared/queue/leases.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { Worker } from "@kenri/shared/queue/worker.ts";
import type { Channel, Send } from "./channels/channel.ts";
import { observeDelivered } from "./metrics.ts";

// The states of a notification and every move between them:
//   PENDING → PROCESSING      claimed; or written so, for the delivery of the same process
//   PROCESSING → PROCESSING   claimed again, because the lease ran out
//   PROCESSING → SENT         the channel took it
//   PROCESSING → PENDING      to be tried again, or released
//   PROCESSING → FAILED       gave up, and in the same statement a dead letter
//   FAILED → PENDING          sent back, and the dead letter is gone (dead_deliveries.ts)

export interface DeliveryOptions extends WorkerOptions {
  worker: string;
  sendTimeoutMs: number;
}

export interface DeliveryParts {
  database: Database;
  channel: Channel;
  toDelivery: Handover<NotificationRow>;
  log: Log;
  abandon: AbortSignal;
}

export const notifications: LeasedTable = {
  name: "notifications",
  id: "notification_id",
  attempts: "delivery_attempts",
  working: "PROCESSING",
  positionColumn: "version",
  claimOrder: "created_at, version",
  columns: "event_id, user_id, type, payload_json as payload, traceparent, " +
    "extract(epoch from locked_at - occurred_at)::float8 as age_seconds",
  // A predecessor that comes later must not bring a retry forward.
  endsWithClaim: "awaits_predecessor = false",
};

export type NotificationContent = Omit<Send, "notification_id"> & {
  traceparent: string | null;
  age_seconds: number; // of its event, when it was claimed
};
export type NotificationRow = LeasedRow<NotificationContent>;

export interface Sent {
  sentAt: number; // by performance.now()
}

export async function deliverNotifications(
  { database, channel, toDelivery, log, abandon }: DeliveryParts,
  options: DeliveryOptions,
  stop: AbortSignal,
): Promise<void> {
  const worker = new Worker<NotificationRow, Sent>(
    {
      name: "delivery",
      ...options,
      claim: claimRepeatedly(database, notifications, options),
      work: ({ id, content: { event_id, user_id, type, payload } }) => {
        const send = { notification_id: id, event_id, user_id, type, payload };
        return sendInTime(channel, send, options.sendTimeoutMs);
      },
      settle: async (settled) => {
        const owned = await settleNotifications(database, settled);
        observeDelivered(settled, owned);
        return owned;
      },
      extend: (rows) => keepNotifications(database, rows, options.leaseMs),
      step: { name: "send", kind: "client" },
      traceparentOf: ({ content }) => content.traceparent,
      about: ({ content: { event_id, payload } }) => ({ event_id, trace_id: payload["trace_id"] }),
    },
    log,
    abandon,
  );
  await worker.run(toDelivery, stop);
}

async function sendInTime(
  channel: Channel,
  send: Send,
  timeoutMs: number,
): Promise<Outcome<Sent>> {
  const late = Promise.withResolvers<never>();
  const limit = new AbortController();
  const timer = setTimeout(() => {
    const error = new Error(`The channel took over ${timeoutMs} ms`);
    limit.abort(error);
    late.reject(error);
  }, timeoutMs);
  try {
    await Promise.race([channel.send(send, limit.signal), late.promise]);
    return { kind: "done", result: { sentAt: performance.now() } };
  } catch (error) {
    return { kind: "retry", error: reasonOf(error) };
  } finally {
    clearTimeout(timer);
  }
}

export function claimNotifications(
  database: Database,
  lease: Lease,
  limit: number,
): Promise<NotificationRow[]> {
  return claimDue(database, notifications, lease, limit);
}

export function keepNotifications(
  database: Database,
  rows: NotificationRow[],
  leaseMs: number,
): Promise<Set<string>> {
  return extendLeases(database, notifications, rows, leaseMs);
}

export function settleNotifications(
  database: Database,
  settled: Settlement<NotificationRow, Sent>[],
): Promise<Set<string>> {
  return settleEach(
    database,
    notifications,
    settled,
    (done) => markSent(database, done),
    (failures) => markFailed(database, failures),
  );
}

// sent_at is the time at which the channel took it: the database's time of the claim and what passed
// since then. So neighbours of a key never look exchanged, however late or early each is settled.
function markSent(
  database: Database,
  done: { row: NotificationRow; result: Sent }[],
): Promise<string[]> {
  return settleRows(
    database,
    done,
    [listOf(done.map(({ row, result }) => result.sentAt - row.claimedAt))],
    `changed as (
       update notifications row
       set status = 'SENT',
         sent_at = row.locked_at + make_interval(secs => sent.after_ms / 1000),
         ${leaseEnds}
       from unnest($1::uuid[], $2::uuid[], $3::float8[]) as sent (id, token, after_ms)
       where row.notification_id = sent.id
         and row.claim_token = sent.token
       returning row.notification_id as id)`,
  );
}

// FAILED and the dead letter are one statement, so there is never one without the other.
function markFailed(
  database: Database,
  failures: { row: NotificationRow; error: string; attempted: boolean }[],
): Promise<string[]> {
  return settleRows(
    database,
    failures,
    [failures.map(({ error }) => error), failures.map(({ attempted }) => attempted)],
    `${givesUp(notifications, ", row.event_id, row.payload_json")}, dead_letter as (
       insert into notification_dlq (notification_id, event_id, payload_json, error_message)
       select id, event_id, payload_json, error from changed
       on conflict (notification_id) do nothing)`,
  );
}
