// One process receives from two streams, each with its own codec, store and dead letters.
import assert from "node:assert/strict";
import { bySubject } from "../../shared/inbox/by_subject.ts";
import { deadMessages } from "../../shared/inbox/dead_messages.ts";
import { inboxStreams } from "../../shared/inbox/durables.ts";
import { type Inbox, inboxLoops } from "../../shared/inbox/inbox.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import { pull } from "../../shared/nats/pull.ts";
import { newOperation } from "../../shared/operators/operations.ts";
import { type Database, openDatabase, query } from "../../shared/postgres/postgres.ts";
import { freshDatabase, type OwnDatabase, ownDatabase } from "../support/databases.ts";
import { ask } from "../support/entitlement.ts";
import { publish } from "../support/events.ts";
import { consumerInfo } from "../support/notification.ts";
import { collectingLog } from "../support/relays.ts";
import { freshStreamNames, natsUrl, withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";
import {
  type Codec,
  counting,
  json,
  publishSmall,
  type SmallEvent,
  smallEvents,
  words,
} from "./small_events.ts";

const durable = "inbox";

Deno.test("two inboxes receive each event once, and each keeps its unreadable messages", async () => {
  await using database = await freshDatabase("notification");
  await using first = await openInbox("first", json, database);
  await using second = await openInbox("second", words, database);
  await using _running = await start([first, second]);
  for (const inbox of [first, second]) {
    const events = smallEvents(20);
    await publishSmall(inbox, events);
    await publishSmall(inbox, events.slice(0, 5));
    await publish(natsUrl, inbox.subject, [{ body: new TextEncoder().encode("unreadable") }]);
    await until("all are stored", async () => (await textsOf(inbox)).length === 20);
    await until("the unreadable one is kept", async () => (await deadOf(inbox)).length === 1);
    assert.deepEqual(await deadOf(inbox), [[inbox.stream, 26, "unreadable"]]);
    const outcomes = { handled: 20, duplicate: 5, unreadable: 1, failed: 0 };
    assert.deepEqual(inbox.counted, outcomes);
  }
});

Deno.test("an event that was stored but not acknowledged is a duplicate when it is delivered again", async () => {
  await using database = await freshDatabase("notification");
  await using inbox = await openInbox("first", json, database);
  await using other = await openInbox("second", words, database);
  const { store } = inbox.inbox;
  let failures = 0;
  inbox.inbox.store = async (events) => {
    const isNew = await store(events);
    if (failures++ === 0) throw new Error("the answer was lost");
    return isNew;
  };
  await using _running = await start([inbox, other]);
  await publishSmall(inbox, smallEvents(1));
  await publishSmall(other, smallEvents(1));
  await until("it is acknowledged", () => inbox.counted.duplicate === 1);
  assert.deepEqual(inbox.counted, { handled: 0, duplicate: 1, unreadable: 0, failed: 1 });
  assert.equal((await textsOf(inbox)).length, 1);
  assert.equal(other.counted.handled, 1);
});

Deno.test("an outage of one inbox's database uses up no deliveries and does not stop the other inbox", async () => {
  await using unstable = await ownDatabase("notification");
  await using stable = await freshDatabase("notification");
  await using inbox = await openInbox("first", json, unstable);
  await using other = await openInbox("second", words, stable);
  await using running = await start([inbox, other]);
  await publishSmall(inbox, smallEvents(10));
  await until("it stores", () => inbox.counted.handled === 10);
  await unstable.server.stop();
  const stoppedAt = performance.now();
  await publishSmall(inbox, smallEvents(50));
  await publishSmall(other, smallEvents(50));
  await until("the other one goes on", () => other.counted.handled === 50);
  const waiting = async () =>
    (await consumerInfo({ stream: inbox.stream, natsUrl }, durable)).num_pending;
  await until("all are in hand", async () => await waiting() === 0);
  await until("all deliveries would be used up", () => performance.now() - stoppedAt > 4_000);
  // Another replica would receive those that are not reported to be in progress.
  assert.deepEqual(await pulledFrom(inbox), [], "the messages are in hand");
  await unstable.server.start();
  await until("it has caught up", () => inbox.counted.handled === 60);
  assert.deepEqual(inbox.counted, { handled: 60, duplicate: 0, unreadable: 0, failed: 0 });
  const { delivered } = await consumerInfo({ stream: inbox.stream, natsUrl }, durable);
  assert.equal(delivered.consumer_seq, 60, "each was delivered once");
  const reports = running.log.filter((line) => /^(error|info) Database/.test(line));
  assert.deepEqual(reports.map((line) => line.replace(/:.*/s, "")), [
    "error Database unavailable, consumption paused",
    "info Database available, consumption resumed",
  ]);
});

Deno.test("a stream with two subjects has a decoder for each", async () => {
  await using database = await freshDatabase("notification");
  await using both = await openInbox("both", json, database);
  const { inbox, subject } = both;
  const other = `${subject}.other`;
  inbox.stream.subjects.push(other);
  inbox.decode = bySubject([subject, json.decode], [other, words.decode]);
  await using _running = await start([both]);
  await publishSmall(both, smallEvents(3));
  await publishSmall({ url: natsUrl, subject: other, codec: words }, smallEvents(3));
  await until("all are stored", async () => (await textsOf(both)).length === 6);
  assert.deepEqual(both.counted, { handled: 6, duplicate: 0, unreadable: 0, failed: 0 });
});

Deno.test("a message of a table that two inboxes share is received again by its own inbox", async () => {
  await using database = await freshDatabase("notification");
  await using first = await openInbox("first", json, database);
  await using second = await openInbox("second", words, database);
  const { deadLetters } = first.inbox;
  assert.ok(deadLetters);
  second.inbox.deadLetters = deadLetters;
  const stores = [first, second].map(({ inbox }) => inbox.store);
  for (const { inbox } of [first, second]) {
    inbox.consumer.maxDeliver = 1;
    inbox.store = () => Promise.reject(new Error("not today"));
  }
  await using _running = await start([first, second]);
  const events = smallEvents(2);
  await publishSmall(first, events.slice(0, 1));
  await publishSmall(second, events.slice(1));
  await until("both are kept", async () => (await deadOf(first)).length === 2);
  [first, second].forEach(({ inbox }, i) => inbox.store = stores[i] ?? inbox.store);
  const dead = deadMessages(deadLetters, [first.inbox, second.inbox]);
  const letters = await dead.find({ after: undefined, error: undefined, limit: 10 });
  assert.deepEqual(
    letters.map(({ event_id, payload }) => ({ event_id, payload })).sort(byId),
    events.sort(byId),
  );
  const operation = newOperation({ who: "kim", reason: "the store works again" });
  assert.equal((await dead.sendBack(letters, operation)).moved.length, 2);
  assert.deepEqual([await textsOf(first), await textsOf(second)], [["event-0"], ["event-1"]]);
});

const byId = (a: { event_id: string | null }, b: { event_id: string | null }) =>
  String(a.event_id) < String(b.event_id) ? -1 : 1;

interface OpenInbox extends AsyncDisposable {
  inbox: Inbox<SmallEvent>;
  stream: string;
  subject: string;
  url: string;
  codec: Codec;
  counted: Record<"handled" | "duplicate" | "unreadable" | "failed", number>;
  ownerUrl: string;
  name: string;
}

async function openInbox(
  name: string,
  codec: Codec,
  { ownerUrl }: Pick<OwnDatabase, "ownerUrl">,
): Promise<OpenInbox> {
  await ask(ownerUrl, `create table ${name}_seen (event_id uuid primary key, text text not null)`);
  await ask(ownerUrl, `create table ${name}_dead (like notification_nats_dlq including all)`);
  const database = openDatabase(ownerUrl, name);
  const { stream, subject } = freshStreamNames();
  const { counted, counts } = counting("handled", "duplicate", "unreadable", "failed");
  const inbox = {
    name,
    batch: name,
    ...inboxStreams(
      { name: stream, subjects: [subject], duplicateWindowMs: 120_000, replicas: 1 },
      { durable, ackWaitMs: 1_000, maxDeliver: 3 },
    ),
    decode: codec.decode,
    store: (events: SmallEvent[]) => storeNew(database, `${name}_seen`, events),
    counts,
    deadLetters: { database, table: `${name}_dead` },
  };
  return {
    ...{ inbox, stream, subject, url: natsUrl, codec, counted, ownerUrl, name },
    [Symbol.asyncDispose]: () => database.end(),
  };
}

async function storeNew(
  database: Database,
  table: string,
  events: SmallEvent[],
): Promise<boolean[]> {
  const stored = await query<{ event_id: string }>(
    database,
    `insert into ${table} (event_id, text)
     select event_id, payload->>'text'
     from jsonb_to_recordset($1) as event (event_id uuid, payload jsonb)
     on conflict do nothing
     returning event_id`,
    [JSON.stringify(events)],
  );
  const isNew = new Set(stored.map(({ event_id }) => event_id));
  return events.map(({ event_id }) => isNew.has(event_id));
}

async function start(inboxes: OpenInbox[]): Promise<AsyncDisposable & { log: string[] }> {
  const { log, lines } = collectingLog();
  const link = new NatsLink({ urls: natsUrl }, "inboxes", log);
  const stop = new AbortController();
  const loops = inboxes.flatMap(({ inbox }) =>
    inboxLoops({ link, log, abandon: stop.signal }, inbox)
  );
  assert.equal(new Set(loops.map(({ name }) => name)).size, loops.length, "names are unique");
  const running = loops.map(({ run }) => run(stop.signal));
  for (const { stream } of inboxes) {
    const exists = () => consumerInfo({ stream, natsUrl }, durable).then(() => true, () => false);
    await until("it consumes", exists);
  }
  return {
    log: lines,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await Promise.all(running);
      await link.close();
    },
  };
}

function pulledFrom({ stream }: OpenInbox): Promise<number[]> {
  return withNats(natsUrl, async (connection) => {
    const sequences: number[] = [];
    await pull(
      { connection, service: "another", stream, name: durable },
      { messages: 100, bytes: 1_000_000 },
      ({ sequence }) => sequences.push(sequence),
    );
    return sequences;
  });
}

async function textsOf({ ownerUrl, name }: OpenInbox): Promise<string[]> {
  const rows = await ask<{ text: string }>(ownerUrl, `select text from ${name}_seen`);
  return rows.map(({ text }) => text);
}

async function deadOf({ ownerUrl, name }: OpenInbox): Promise<[string, number, string][]> {
  const rows = await ask<{ stream: string; seq: number; body: string }>(
    ownerUrl,
    `select stream, stream_seq::int as seq, convert_from(message_body, 'UTF8') as body
     from ${name}_dead`,
  );
  return rows.map(({ stream, seq, body }) => [stream, seq, body]);
}
