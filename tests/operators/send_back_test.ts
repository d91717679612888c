// The statements that send dead letters back: they change only rows that are dead letters at that
// moment, once, give back all attempts, and wake the worker.
import assert from "node:assert/strict";
import { Hono } from "hono";
import { deadEvents } from "../../entitlement/operators/dead_events.ts";
import { deadReservations } from "../../entitlement/operators/dead_reservations.ts";
import { eventInboxes } from "../../notification/consume_events.ts";
import type { NotificationRow } from "../../notification/deliveries.ts";
import { deadDeliveries } from "../../notification/dead_letters/dead_deliveries.ts";
import { deadMessages } from "../../shared/inbox/dead_messages.ts";
import { inboxStreams } from "../../shared/inbox/durables.ts";
import { newOperation } from "../../shared/operators/operations.ts";
import { type SendBack, sendBack } from "../../shared/operators/send_back.ts";
import { Handover } from "../../shared/queue/handover.ts";
import { Wakeup } from "../../shared/process/signals.ts";
import { uuidv7 } from "../../shared/process/uuid.ts";
import { ask, countRows, withClient } from "../../tools/servers/asking.ts";
import { bodyOf, eventOf } from "../support/events.ts";
import { waitingForLocks } from "../support/locks.ts";
import { type Opened, openFresh } from "../support/databases.ts";
import { insertEvents, manyEvents } from "../support/outbox.ts";
import { insertReservations } from "../support/points.ts";
import { inTime, until } from "../../tools/servers/wait.ts";

const operation = () => newOperation({ who: "kim", reason: "the channel is back" });

interface Layer extends AsyncDisposable {
  tables: Opened;
  table: SendBack;
  wake: Wakeup;
  name: string; // of the table that contains the dead letters
  dead: string[]; // ids of three dead letters, the oldest first
}

const layers = {
  outbox: deadOutbox,
  reservation: deadReservation,
  delivery: deadDelivery,
  advisory: deadAdvisory,
};

for (const [name, open] of Object.entries(layers)) {
  Deno.test(`${name}: two operators at the same time send back once, and the worker is woken`, async () => {
    await using layer = await open();
    const { tables, table, wake } = layer;
    const found = await table.findByIds(layer.dead);
    const sent = await withClient(tables.ownerUrl, async (holder) => {
      await holder.query("begin");
      await holder.query(`select from ${layer.name} for update`);
      const both = [1, 2].map(() => table.sendBack(found, operation()));
      await until("both wait", async () => await waitingForLocks(tables.ownerUrl) === 2);
      await holder.query("commit");
      return await Promise.all(both);
    });
    assert.deepEqual(sent.flatMap(({ moved }) => moved).sort(), layer.dead.toSorted());
    const [recorded] = await ask(
      tables.ownerUrl,
      "select count(*)::int as operations, sum(jsonb_array_length(items))::int as items from operations",
    );
    assert.deepEqual(recorded, { operations: 1, items: 3 });
    await inTime("it was woken", wake.wait(3_600_000, new AbortController().signal), 5_000);
  });

  Deno.test(`${name}: one page is sent back, and the rows after it stay dead letters`, async () => {
    await using layer = await open();
    const { table, dead } = layer;
    const [one] = await table.findByIds(dead);
    const app = new Hono().post("/", sendBack([table]));
    const body = { error: one?.error, limit: 2, who: "kim", reason: "the channel is back" };
    const answer = await app.request("/", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const { dead_letters, next_cursor } = await answer.json();
    assert.deepEqual(dead_letters.map(({ id }: { id: string }) => id), dead.slice(0, 2));
    assert.equal(typeof next_cursor, "string");
    const left = await table.findByIds(dead);
    assert.deepEqual(left.map(({ id }) => id), dead.slice(2));
  });
}

Deno.test("only events that are still FAILED are sent back, with all their attempts", async () => {
  await using layer = await deadOutbox();
  const { tables, table, dead } = layer;
  const found = await table.findByIds(dead);
  await ask(
    tables.ownerUrl,
    `update outbox_events
     set status = 'PUBLISHED', published_at = now(), stream_generation = 1, stream_seq = 1
     where event_id = $1`,
    [dead[0]],
  );
  await ask(tables.ownerUrl, "update outbox_events set status = 'PENDING' where event_id = $1", [
    dead[1],
  ]);
  const stillDead = await table.find({ after: undefined, error: undefined, limit: 10 });
  assert.deepEqual(stillDead.map(({ id }) => id), [dead[2]]);
  assert.deepEqual((await table.sendBack(found, operation())).moved, [dead[2]]);
  assert.deepEqual(await statesIn(tables, "outbox_events", "event_id"), [
    ["PUBLISHED", 3],
    ["PENDING", 3],
    ["PENDING", 0],
  ]);
});

Deno.test("only reservations that are still FAILED are sent back; they are due at once, with all their attempts", async () => {
  await using layer = await deadReservation();
  const { tables, table, dead } = layer;
  const found = await table.findByIds(dead);
  await ask(
    tables.ownerUrl,
    "update point_reservations set status = 'CANCELLED', done_at = now() where id = $1",
    [dead[0]],
  );
  assert.deepEqual((await table.sendBack(found, operation())).moved.sort(), dead.slice(1));
  assert.deepEqual(await statesIn(tables, "point_reservations", "id"), [
    ["CANCELLED", 3],
    ["PENDING", 0],
    ["PENDING", 0],
  ]);
  const late = "point_reservations where unfinished and due_at < now() - interval '1 minute'";
  assert.equal(await countRows(tables.ownerUrl, late), 0, "most claims would not find them");
});

Deno.test("only notifications that are still FAILED are sent back, with all their attempts", async () => {
  await using layer = await deadDelivery();
  const { tables, table, dead } = layer;
  await ask(
    tables.ownerUrl,
    "update notifications set status = 'SENT', sent_at = now() where version = 1",
  );
  await table.sendBack(await table.findByIds(dead), operation());
  assert.deepEqual(await statesIn(tables, "notifications", "version"), [
    ["SENT", 3],
    ["PENDING", 0],
    ["PENDING", 0],
  ]);
});

Deno.test("a deleted notification is restored unchanged", async () => {
  await using layer = await deadDelivery();
  const { tables, table, dead } = layer;
  const columns = "notification_id, event_id, user_id, aggregate_key, version, type, payload_json";
  const rows = () => ask(tables.ownerUrl, `select ${columns} from notifications order by version`);
  const before = await rows();
  await ask(tables.ownerUrl, "delete from notifications");
  await table.sendBack(await table.findByIds(dead), operation());
  assert.deepEqual(await rows(), before);
});

async function statesIn({ ownerUrl }: Opened, table: string, order: string) {
  const rows = await ask<{ status: string; attempt_count: number }>(
    ownerUrl,
    `select status, attempt_count from ${table} order by ${order}`,
  );
  return rows.map(({ status, attempt_count }) => [status, attempt_count]);
}

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
    { ...streams, points: streams, predecessorWaitMs: 1_000 },
  );
  const name = "notification_nats_dlq";
  const table = deadMessages({ database, table: name }, inboxes);
  const dead = await idsIn(tables, name);
  return layerOf({ tables, table, wake: toDelivery.wake, name, dead });
}

async function idsIn({ ownerUrl }: Opened, table: string): Promise<string[]> {
  const rows = await ask<{ id: string }>(
    ownerUrl,
    `select dlq_id::text as id from ${table} order by dlq_id`,
  );
  return rows.map(({ id }) => id);
}

function layerOf(parts: Omit<Layer, typeof Symbol.asyncDispose>): Layer {
  return { ...parts, [Symbol.asyncDispose]: () => parts.tables[Symbol.asyncDispose]() };
}
