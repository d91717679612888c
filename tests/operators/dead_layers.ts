// Dead letters of every layer, to send them back.
import { deadEvents } from "../../entitlement/operators/dead_events.ts";
import { deadReservations } from "../../entitlement/operators/dead_reservations.ts";
import { eventInboxes } from "../../notification/consume_events.ts";
import type { NotificationRow } from "../../notification/deliveries.ts";
import { deadDeliveries } from "../../notification/dead_letters/dead_deliveries.ts";
import { deadOrders } from "../../notification/operators/orders/dead_orders.ts";
import { deadMessages } from "../../shared/inbox/dead_messages.ts";
import { inboxStreams } from "../../shared/inbox/durables.ts";
import { type SendBack } from "../../shared/operators/send_back.ts";
import { Handover } from "../../shared/queue/handover.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { uuidv7 } from "../../shared/process/uuid.ts";
import { ask } from "../../tools/servers/asking.ts";
import { bodyOf, eventOf } from "../support/events.ts";
import { type Opened, openFresh } from "../support/databases.ts";
import { insertEvents, manyEvents } from "../support/outbox.ts";
import { insertReservations } from "../support/points.ts";
import { insertOrder } from "./order_rows.ts";

export interface Layer extends AsyncDisposable {
  tables: Opened;
  table: SendBack;
  wake: Wakeup;
  name: string; // of the table that contains the dead letters
  dead: string[]; // ids of three dead letters, the oldest first
}

export const layers = {
  outbox: deadOutbox,
  reservation: deadReservation,
  delivery: deadDelivery,
  advisory: deadAdvisory,
  order: deadOrder,
};

async function deadOutbox(): Promise<Layer> {
  const tables = await openFresh("entitlement");
  const ids = await insertEvents(tables.ownerUrl, manyEvents({ keys: 3, versions: 1 }));
  await ask(
    tables.ownerUrl,
    "update outbox_events set status = 'FAILED', attempt_count = 3, last_error = 'no'",
  );
  const wake = new Wakeup();
  const table = deadEvents(tables.database, wake);
  return layerOf({ tables, table, wake, name: "outbox_events", dead: ids.toSorted() });
}

// They became due long ago.
async function deadReservation(): Promise<Layer> {
  const tables = await openFresh("entitlement");
  const { ownerUrl } = tables;
  const week = 7 * 86_400_000;
  const ids = await insertReservations(ownerUrl, { count: 3, users: 1, fromMs: -week, overMs: 1 });
  await ask(
    ownerUrl,
    "update point_reservations set status = 'FAILED', attempt_count = 3, last_error = 'no'",
  );
  const wake = new Wakeup();
  const table = deadReservations(tables.database, wake);
  return layerOf({ tables, table, wake, name: "point_reservations", dead: ids.toSorted() });
}

async function deadDelivery(): Promise<Layer> {
  const tables = await openFresh("notification");
  await ask(
    tables.ownerUrl,
    `with notification as (
       insert into notifications
         (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at,
          payload_json, status, attempt_count)
       select gen_random_uuid(), gen_random_uuid(), 'ann', 'ann:book', n, 'EntitlementGranted',
         '2026-01-02T03:04:05Z',
         jsonb_build_object('user_id', 'ann', 'stock_keeping_unit', 'book', 'version', n,
           'event_type', 'EntitlementGranted', 'occurred_at', '2026-01-02T03:04:05Z'),
         'FAILED', 3
       from generate_series(1, 3) as n
       returning *
     )
     insert into notification_dlq (notification_id, event_id, payload_json, error_message)
     select notification_id, event_id, payload_json, 'no' from notification order by version`,
  );
  const wake = new Wakeup();
  const table = deadDeliveries(tables.database, wake);
  const dead = await idsIn(tables, "notification_dlq");
  return layerOf({ tables, table, wake, name: "notification_dlq", dead });
}

async function deadAdvisory(): Promise<Layer> {
  const tables = await openFresh("notification");
  for (let i = 1; i <= 3; i++) {
    await ask(
      tables.ownerUrl,
      `insert into notification_nats_dlq
         (advisory_id, kind, stream, consumer, stream_seq, advised_at, message_body)
       values ($1, 'MAX_DELIVERIES', 's', 'c', $2, now(), $3)`,
      [uuidv7(), i, bodyOf(eventOf({ stockKeepingUnit: `item-${i}` }))],
    );
  }
  const { database } = tables;
  const toDelivery = new Handover<NotificationRow>();
  const stream = {
    name: "s",
    subjects: ["s.events"] as [string],
    duplicateWindowMs: 1,
    replicas: 1,
  };
  const consumer = { durable: "c", ackWaitMs: 1_000, maxDeliver: 1 };
  const streams = inboxStreams(stream, consumer);
  const inboxes = eventInboxes(
    { database, toDelivery },
    {
      ...streams,
      points: streams,
      matchmaking: { ...streams, enabled: false },
      predecessorWaitMs: 1_000,
    },
  );
  const name = "notification_nats_dlq";
  const table = deadMessages({ database, table: name }, inboxes);
  const dead = await idsIn(tables, name);
  return layerOf({ tables, table, wake: toDelivery.wake, name, dead });
}

async function deadOrder(): Promise<Layer> {
  const tables = await openFresh("notification");
  const dead = [];
  for (let i = 0; i < 3; i++) {
    dead.push(await insertOrder(tables.ownerUrl, { status: "ABORTED", reason: "SERVER_ERROR" }));
  }
  const wake = new Wakeup();
  const table = deadOrders(tables.database, wake);
  return layerOf({ tables, table, wake, name: "outbox_orders", dead: dead.toSorted() });
}

export async function idsIn({ ownerUrl }: Opened, table: string): Promise<string[]> {
  const rows = await ask<{ id: string }>(
    ownerUrl,
    `select dlq_id::text as id from ${table} order by dlq_id`,
  );
  return rows.map(({ id }) => id);
}

function layerOf(parts: Omit<Layer, typeof Symbol.asyncDispose>): Layer {
  return { ...parts, [Symbol.asyncDispose]: () => parts.tables[Symbol.asyncDispose]() };
}
