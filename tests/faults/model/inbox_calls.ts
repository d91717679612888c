// The notification database of the model, and the real functions that change it.
import { notifications } from "../../../notification/deliveries.ts";
import type { Notification } from "../../../notification/notification.ts";
import { receiveEvents } from "../../../notification/receive_events.ts";
import { query } from "../../../shared/postgres/postgres.ts";
import { freshDatabase } from "../../support/databases.ts";
import {
  asHeld,
  asRecords,
  byEvent,
  eventOf,
  idOf,
  type LeasedCalls,
  leasedCalls,
  leasedColumns,
  leasedValues,
  newLease,
  rowOfModel,
  type StoredRow,
  tokenOf,
} from "./leased_rows.ts";
import {
  type Changed,
  RealCalls,
  type Rewrite,
  type TableAccess,
  unlessInterrupted,
  type View,
} from "./real_calls.ts";
import { type Event, events, type Held, type Inbox, type NotificationRow } from "./state.ts";

export interface InboxCalls extends LeasedCalls<Inbox> {
  real: RealCalls<Inbox>;
  // Returns the rows that were written as leased, which needs a deliverer that offers to take them.
  // `killed`: the process dies between the insert and the end of the waits.
  receive(
    inbox: Inbox,
    received: Event[],
    offered: boolean,
    killed: boolean,
  ): Promise<Changed<Inbox, Held[]>>;
}

export function inboxCalls(rewrite?: Rewrite): InboxCalls {
  const real = new RealCalls(access, rewrite);
  return {
    real,
    ...leasedCalls(real, {
      claim: notifications.claim,
      keep: notifications.extend,
      settle: notifications.settle,
      resultAt: () => ({ sentAt: 0 }),
    }, { ofRow: onlyRow }),
    receive: (inbox, received, offered, killed) =>
      real.after(
        inbox,
        `receive ${received} ${offered}`,
        async (database) => {
          const lease = offered ? newLease() : undefined;
          const written = await unlessInterrupted(
            receiveEvents(
              database,
              received.map(asNotification),
              { predecessorWaitMs: 3_600_000 },
              lease,
            ),
          );
          return (written?.leased ?? []).map((row) => ({
            ...asHeld(row),
            event: eventOf(row.content.event_id),
          }));
        },
        killed ? { killedBefore: /set awaits_predecessor = false/ } : {},
      ),
  };
}

const onlyRow = (event: Event): View<Inbox> => ({
  of: ({ rows, processed }) => ({
    rows: rows.map((row, at) => at === event ? row : null),
    processed: processed.map(() => false),
  }),
  unread: /exists|processed_events/,
});

export function asNotification(event: Event): Notification {
  const { key = "", version = 0 } = events[event] ?? {};
  const [user_id = "", stock_keeping_unit = ""] = key.split(":");
  const type = "EntitlementGranted";
  const event_id = idOf(event);
  const occurred_at = "2026-01-02T03:04:05Z";
  const named = { event_id, user_id, version, occurred_at };
  const source = { source: "model", source_id: "1", trace_id: "t" };
  const payload = { ...named, ...source, event_type: type, stock_keeping_unit };
  return { ...named, aggregate_key: key, type, payload };
}

// In the model a notification has the id of its event, so the id of a new one is ignored.
const access: TableAccess<Inbox> = {
  freshDatabase: () => freshDatabase("notification"),
  names: ["processed_events", "notifications", "notification_dlq", "delivery_attempts"],
  tokenOf,
  load: ({ rows, processed }) =>
    `insert into processed_events (event_id)
     select id from unnest('{${
      processed.flatMap((seen, event) => seen ? [idOf(event)] : [])
    }}'::uuid[]) as id;
     insert into notifications
       (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json,
        created_at, awaits_predecessor, sent_at, ${leasedColumns})
     select id, id, 'user', key, version, 'EntitlementGranted', now(), '{}',
       born, "awaitsPredecessor", case when status = 'SENT' then now() end, ${leasedValues}
     from ${asRecords(rows, '"awaitsPredecessor" boolean')};
     insert into notification_dlq (notification_id, event_id, payload_json, error_message)
     select id, id, '{}', 'refused'
     from ${asRecords(rows, '"deadLetters" int')}
     where "deadLetters" > 0`,
  lock: (event) => `select from notifications where event_id = '${idOf(event)}' for update`,
  async read(owner) {
    const found = await query<StoredRow<NotificationRow>>(
      owner,
      `select event_id, ${rowOfModel}, awaits_predecessor as "awaitsPredecessor",
         (select count(*)::int from notification_dlq where event_id = row.event_id)
           as "deadLetters"
       from notifications row`,
    );
    const processed = await query<{ event_id: string }>(
      owner,
      "select event_id from processed_events",
    );
    const { rows, tokens } = byEvent<NotificationRow>(found);
    const isProcessed = (event: Event) =>
      processed.some(({ event_id }) => event_id === idOf(event));
    return { tokens, tables: { rows, processed: events.map((_, event) => isProcessed(event)) } };
  },
};
