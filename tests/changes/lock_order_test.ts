// Statements that wait for row locks take them in the order of the event ids. So they can't deadlock,
// however many of them run at the same time.
import assert from "node:assert/strict";
import { deadEvents } from "../../entitlement/operators/dead_events.ts";
import { republishLost } from "../../entitlement/republish/republish_lost.ts";
import { republishRange } from "../../entitlement/republish/republish_range.ts";
import { republishUnreceived } from "../../entitlement/republish/republish_unreceived.ts";
import { readNotification } from "../../notification/notification.ts";
import { receiveEvents } from "../../notification/receive_events.ts";
import { newOperation } from "../../shared/operators/operations.ts";
import type { Database } from "../../shared/postgres/postgres.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { openFresh } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { bodyOf, eventOf } from "../support/events.ts";
import { insertedBefore, lockedBefore } from "../support/locks.ts";
import { collectingLog } from "../support/relays.ts";

const ids = [1, 2, 3, 4, 5].map((i) => `00000000-0000-7000-8000-00000000000${i}`);
const [first = "", , third = "", , last = ""] = ids;
const events = { table: "outbox_events", key: "event_id", keys: ids };
const operation = () => newOperation({ who: "kim", reason: "test" });

interface Case {
  name: string;
  work(database: Database): Promise<unknown>;
  status?: string;
}

const cases: Case[] = [
  {
    name: "events that the stream has lost",
    work: (database) => republishLost(database, collectingLog().log),
  },
  {
    name: "events of a range that is replayed",
    work: (database) =>
      republishRange(database, {
        from: "2020-01-01T00:00:00Z",
        to: "2100-01-01T00:00:00Z",
        limit: 100,
      }, operation()),
  },
  {
    name: "events that were not received",
    work: (database) => republishUnreceived(database, [4, 2, 5, 1, 3].map(audited), operation()),
  },
  {
    name: "dead letters that are sent back",
    status: "FAILED",
    work: (database) =>
      deadEvents(database, new Wakeup()).sendBack(
        [4, 2, 5, 1, 3].map((i) => ({ id: ids[i - 1] ?? "" }) as never),
        operation(),
      ),
  },
];

for (const { name, work, status = "PUBLISHED" } of cases) {
  Deno.test(`${name} are locked in the order of their ids`, async () => {
    for (const held of [first, third, last]) {
      await using place = await openFresh("entitlement");
      await publishedInOtherOrders(place.ownerUrl, status);
      const locked = await lockedBefore(
        place.ownerUrl,
        events,
        held,
        () => work(place.database),
      );
      assert.deepEqual(locked, ids.filter((id) => id < held), `while ${held} is held`);
    }
  });
}

Deno.test("unreceived events are counted in the order of their ids", async () => {
  for (const held of [first, third, last]) {
    await using place = await openFresh("entitlement");
    await publishedInOtherOrders(place.ownerUrl, "PUBLISHED");
    await ask(
      place.ownerUrl,
      `insert into unreceived_events
         (event_id, occurred_at, user_id, stock_keeping_unit, version, state)
       select event_id, created_at, 'ann', 'book', 1, 'MISSING'
       from outbox_events
       order by event_id desc`,
    );
    const locked = await lockedBefore(
      place.ownerUrl,
      { ...events, table: "unreceived_events" },
      held,
      () => republishUnreceived(place.database, [4, 2, 5, 1, 3].map(audited), operation()),
    );
    assert.deepEqual(locked, ids.filter((id) => id < held), `while ${held} is held`);
  }
});

Deno.test("events that are written again from the audit are inserted in the order of their ids", async () => {
  for (const held of [first, third, last]) {
    await using place = await openFresh("entitlement");
    await ask(
      place.ownerUrl,
      `insert into entitlement_audit (audit_id, occurred_at, user_id, stock_keeping_unit, action,
         source, source_id, request_id, detail)
       select id::uuid, occurred_at::timestamptz, 'ann', 'book', 'GRANT', 's', 'p', 'k',
         '{"version": 1}'
       from unnest($1::text[], $2::text[]) as audited (id, occurred_at)`,
      [ids, [1, 2, 3, 4, 5].map((i) => audited(i).occurred_at)],
    );
    const inserted = await insertedBefore(
      place.ownerUrl,
      {
        ...events,
        insert: `insert into outbox_events (event_id, event_type, aggregate_key, payload)
          values ($1, 'EntitlementGranted', 'k', '{}')`,
      },
      held,
      () => republishUnreceived(place.database, [4, 2, 5, 1, 3].map(audited), operation()),
    );
    assert.deepEqual(inserted, ids.filter((id) => id < held), `while ${held} is held`);
  }
});

Deno.test("received events are inserted in the order of their ids", async () => {
  for (const held of [first, third, last]) {
    await using place = await openFresh("notification");
    const inserted = await insertedBefore(
      place.ownerUrl,
      {
        table: "processed_events",
        key: "event_id",
        keys: ids,
        insert: "insert into processed_events (event_id) values ($1)",
      },
      held,
      () => receiveEvents(place.database, [4, 2, 5, 1, 3].map(received), 60_000),
    );
    assert.deepEqual(inserted, ids.filter((id) => id < held), `while ${held} is held`);
  }
});

Deno.test("notifications whose wait is over are locked in the order of their ids", async () => {
  for (const held of [first, third, last]) {
    await using place = await openFresh("notification");
    const successors = [1, 2, 3, 4, 5].map((i) =>
      readNotification(bodyOf(eventOf({ eventId: ids[i - 1] ?? "", userId: `u${i}`, version: 2 })))
    );
    await receiveEvents(place.database, successors, 60_000);
    const predecessors = [4, 2, 5, 1, 3].map((i) =>
      readNotification(bodyOf(eventOf({ userId: `u${i}`, version: 1 })))
    );
    const locked = await lockedBefore(
      place.ownerUrl,
      { table: "notifications", key: "notification_id", keys: ids },
      held,
      () => receiveEvents(place.database, predecessors, 60_000),
    );
    assert.deepEqual(locked, ids.filter((id) => id < held), `while ${held} is held`);
  }
});

/** An event of the audit. The order of the times differs from the order of the ids. */
function audited(i: number) {
  const occurred_at = `2026-11-0${1 + (i * 2) % 5}T00:00:00.000000Z`;
  const event_id = ids[i - 1] ?? "";
  return { event_id, occurred_at, user_id: "ann", stock_keeping_unit: "book", version: 1 };
}

function received(i: number) {
  return readNotification(bodyOf(eventOf({ eventId: ids[i - 1] ?? "", userId: `u${i}` })));
}

/** Rows whose sequences, times and places in the table have other orders than their ids. */
async function publishedInOtherOrders(ownerUrl: string, status: string): Promise<void> {
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
