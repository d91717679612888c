// Statements that wait for row locks take them in the order of the event ids. So they can't
// deadlock, however many of them run at the same time.
import assert from "node:assert/strict";
import type { AuditedEvent } from "../../entitlement/reconciliation/check.ts";
import { outbox } from "../../entitlement/outbox.ts";
import { republishUnreceived } from "../../entitlement/reconciliation/republish_unreceived.ts";
import { type Notification, readNotification } from "../../notification/notification.ts";
import { receiveEvents } from "../../notification/receive_events.ts";
import { newOperation } from "../../shared/operators/operations.ts";
import { republishDead } from "../../shared/outbox/republish_dead.ts";
import { republishLost } from "../../shared/outbox/republish_lost.ts";
import { republishRange } from "../../shared/outbox/republish_range.ts";
import type { Database } from "../../shared/postgres/postgres.ts";
import { type Opened, openFresh } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { bodyOf, eventOf } from "../support/events.ts";
import { insertedBefore, lockedBefore, type Rows } from "../support/locks.ts";
import { collectingLog } from "../support/relays.ts";

const waiting = { predecessorWaitMs: 60_000 };

const numbers = [4, 2, 5, 1, 3]; // the order in which the work gets its events
const ids = [1, 2, 3, 4, 5].map(idOf);
const operation = () => newOperation({ who: "kim", reason: "test" });
const events = { table: "outbox_events", key: "event_id", keys: ids };
const unreceived = () => numbers.map(audited);

interface Case {
  name: string;
  service?: "notification";
  rows?: Rows & { insert?: string }; // inserted by this statement; otherwise they are locked
  prepare?(place: Opened): Promise<unknown>;
  work(database: Database): Promise<unknown>;
}

const cases: Case[] = [
  {
    name: "events that the stream has lost are locked",
    prepare: ({ ownerUrl }) => finishedInOtherOrders(ownerUrl, "PUBLISHED"),
    work: (database) => republishLost(database, outbox, collectingLog().log),
  },
  {
    name: "events of a range that is replayed are locked",
    prepare: ({ ownerUrl }) => finishedInOtherOrders(ownerUrl, "PUBLISHED"),
    work: (database) => {
      const range = { from: "2020-01-01T00:00:00Z", to: "2100-01-01T00:00:00Z", limit: 100 };
      return republishRange(database, outbox, range, operation());
    },
  },
  {
    name: "events that were not received are locked",
    prepare: ({ ownerUrl }) => finishedInOtherOrders(ownerUrl, "PUBLISHED"),
    work: (database) => republishUnreceived(database, unreceived(), operation()),
  },
  {
    name: "dead letters that are sent back are locked",
    prepare: ({ ownerUrl }) => finishedInOtherOrders(ownerUrl, "FAILED"),
    work: (database) => republishDead(database, outbox, numbers.map(idOf), operation()),
  },
  {
    name: "unreceived events are counted",
    rows: { ...events, table: "unreceived_events" },
    prepare: async ({ ownerUrl }) => {
      await finishedInOtherOrders(ownerUrl, "PUBLISHED");
      await ask(
        ownerUrl,
        `insert into unreceived_events
           (event_id, occurred_at, user_id, stock_keeping_unit, version, state)
         select event_id, created_at, 'ann', 'book', 1, 'MISSING'
         from outbox_events
         order by event_id desc`,
      );
    },
    work: (database) => republishUnreceived(database, unreceived(), operation()),
  },
  {
    name: "events that are written again from the audit are inserted",
    rows: {
      ...events,
      insert: `insert into outbox_events (event_id, event_type, aggregate_key, payload)
        values ($1, 'EntitlementGranted', 'k', '{}')`,
    },
    prepare: ({ ownerUrl }) =>
      ask(
        ownerUrl,
        `insert into entitlement_audit (audit_id, occurred_at, user_id, stock_keeping_unit, action,
           source, source_id, request_id, detail)
         select event_id, occurred_at, 'ann', 'book', 'GRANT', 's', 'p', 'k', '{"version": 1}'
         from json_to_recordset($1) as audited (event_id uuid, occurred_at timestamptz)`,
        [JSON.stringify(unreceived())],
      ),
    work: (database) => republishUnreceived(database, unreceived(), operation()),
  },
  {
    name: "received events are inserted",
    service: "notification",
    rows: {
      ...events,
      table: "processed_events",
      insert: "insert into processed_events (event_id) values ($1)",
    },
    work: (database) => receiveEvents(database, numbers.map((n) => received(n, 1)), waiting),
  },
  {
    name: "notifications whose wait is over are locked",
    service: "notification",
    rows: { table: "notifications", key: "notification_id", keys: ids },
    prepare: ({ database }) =>
      receiveEvents(database, [1, 2, 3, 4, 5].map((n) => received(n, 2)), waiting),
    work: (database) => {
      const predecessors = numbers.map((n) => received(n, 1, crypto.randomUUID()));
      return receiveEvents(database, predecessors, waiting);
    },
  },
];

for (const { name, service = "entitlement", rows = events, prepare, work } of cases) {
  Deno.test(`${name} in the order of their ids`, async () => {
    for (const held of [1, 3, 5].map(idOf)) {
      await using place = await openFresh(service);
      await prepare?.(place);
      const start = () => work(place.database);
      const { insert } = rows as { insert?: string };
      const before = insert === undefined
        ? await lockedBefore(place.ownerUrl, rows, held, start)
        : await insertedBefore(place.ownerUrl, { ...rows, insert }, held, start);
      assert.deepEqual(before, ids.filter((id) => id < held), `while ${held} is held`);
    }
  });
}

function idOf(n: number): string {
  return `00000000-0000-7000-8000-00000000000${n}`;
}

/** An event of the audit. The order of the times differs from the order of the ids. */
function audited(n: number): AuditedEvent {
  const occurred_at = `2026-11-0${1 + (n * 2) % 5}T00:00:00.000000Z`;
  const event_id = idOf(n);
  return { event_id, occurred_at, user_id: "ann", stock_keeping_unit: "book", version: 1 };
}

function received(n: number, version: number, eventId = idOf(n)): Notification {
  return readNotification(bodyOf(eventOf({ eventId, userId: `user-${n}`, version })));
}

/** Rows whose sequences, times and places in the table have other orders than their ids. */
async function finishedInOtherOrders(ownerUrl: string, status: string): Promise<void> {
  await ask(
    ownerUrl,
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, status, created_at, published_at,
        stream_generation, stream_seq)
     select id, 'EntitlementGranted', 'key-' || n, '{}', $2,
       now() - n * interval '1 hour',
       case when $2 = 'PUBLISHED' then now() - n * interval '1 minute' end,
       case when $2 = 'PUBLISHED' then 1 end,
       case when $2 = 'PUBLISHED' then 10 - n end
     from unnest($1::uuid[]) with ordinality as event (id, n)
     order by n * 2 % 5`,
    [ids, status],
  );
  await ask(
    ownerUrl,
    `insert into stream_generations (generation, stream, stream_created_at, server_id, kept_up_to)
     values (1, 's', 'a', 'a', 0), (2, 's', 'b', 'b', 0)`,
  );
}
