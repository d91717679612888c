// A read-only inbox gives each replica all events of a stream, at once and without a gap, and says
// how old its knowledge is. Nothing in NATS belongs to it.
import assert from "node:assert/strict";
import { NatsLink } from "../../shared/nats/link.ts";
import { ReadOnlyInbox } from "../../shared/inbox/read_only_inbox.ts";
import { usersFile } from "../../tools/provision/users.ts";
import { startNats } from "../../tools/servers/nats.ts";
import { until } from "../../tools/servers/wait.ts";
import { publish } from "../support/events.ts";
import { collectingLog } from "../support/relays.ts";
import {
  deleteStream,
  freshStreamNames,
  makeStream,
  natsUrl,
  withNats,
} from "../support/streams.ts";
import { counting, json, publishSmall, type SmallEvent, smallEvents } from "./small_events.ts";

Deno.test("every replica receives every event at once, and needs no consumer", async () => {
  const place = await freshStream();
  await publishSmall(place, smallEvents(3)); // before the start: they are loaded, not received
  await using one = replica(place);
  await using other = replica(place);
  await until("both have loaded", () => one.inbox.ageMs + other.inbox.ageMs < 10_000);
  const events = smallEvents(200);
  const publishedAt = performance.now();
  for (const event of events.slice(0, 5)) await publishSmall(place, [event]);
  await until("both receive", () => one.taken.size === 5 && other.taken.size === 5, 900);
  assert.ok(performance.now() - publishedAt < 900, "it waited for the next poll");
  await publishSmall(place, events);
  await until("both have all", () => one.taken.size === 200 && other.taken.size === 200);
  assert.deepEqual([one.loads, other.loads, one.counted.handled], [1, 1, 200]);
  await withNats(natsUrl, async (connection) => {
    const { consumers } = await connection.jetstreamManager();
    assert.deepEqual(await consumers.list(place.stream).next(), []);
  });
});

Deno.test("what was published while it was not connected is received later, without loading", async () => {
  const place = await freshStream();
  await using one = replica(place);
  await until("it has loaded", () => one.inbox.ageMs < 5_000);
  await one.stop();
  await publishSmall(place, smallEvents(250));
  one.start();
  await until("it has them", () => one.taken.size === 250);
  assert.equal(one.loads, 1);
});

Deno.test("it loads again when events were dropped or the stream was made anew", async () => {
  const place = await freshStream();
  await using one = replica(place);
  await until("it has loaded", () => one.loads === 1);
  await one.stop();
  await publishSmall(place, smallEvents(3));
  await withNats(natsUrl, async (connection) => {
    await (await connection.jetstreamManager()).streams.purge(place.stream);
  });
  one.start();
  await until("it loads what was dropped", () => one.loads === 2);
  await one.stop();
  await deleteStream(natsUrl, place.stream);
  await makeStream(natsUrl, place);
  await publishSmall(place, smallEvents(5)); // more than the old stream had
  one.start();
  await until("it loads for the new stream", () => one.loads === 3);
  assert.equal(one.taken.size, 0);
  await publishSmall(place, smallEvents(1));
  await until("it receives", () => one.taken.size === 1);
});

Deno.test("its knowledge grows old while NATS is down, and has no age before it is loaded", async () => {
  await using nats = await startNats();
  const place = { ...await freshStream(nats.url), url: nats.url };
  await using one = replica(place, { failures: 2 });
  await until("the load fails", () => one.log.some((line) => /can't be read/.test(line)));
  assert.equal(one.inbox.ageMs, Infinity);
  await until("it is loaded", () => one.inbox.ageMs < 2_000);
  await nats.stop();
  await until("it is old", () => one.inbox.ageMs > 3_000);
  await nats.start();
  await until("it is current", () => one.inbox.ageMs < 2_000);
  const complaints = one.log.filter((line) => /can't be read/.test(line));
  assert.equal(complaints.length, 1, complaints.join("\n"));
});

Deno.test("an event that can't be read is reported once and loaded again, and holds up no other", async () => {
  const place = await freshStream();
  await using one = replica(place);
  await until("it has loaded", () => one.inbox.ageMs < 5_000);
  await publish(natsUrl, place.subject, [{ body: new TextEncoder().encode("not JSON") }]);
  await until("what it may have said is loaded", () => one.loads === 2);
  await publishSmall(place, smallEvents(2));
  await until("it has read the stream", () => one.counted.duplicate === 2);
  assert.deepEqual(one.counted, { handled: 2, duplicate: 2, unreadable: 1 });
  const reports = one.log.filter((line) => / is left out/.test(line));
  assert.deepEqual(reports, [
    "error Message 1 can't be read and is left out: " +
    "UnreadableMessage: not JSON",
  ]);
  assert.equal(one.loads, 2);
});

Deno.test("it loads again when an event was deleted before it was read", async () => {
  const place = await freshStream();
  await using one = replica(place);
  await until("it has loaded", () => one.inbox.ageMs < 5_000);
  await one.stop();
  await publishSmall(place, smallEvents(3));
  await withNats(natsUrl, async (connection) => {
    await (await connection.jetstreamManager()).streams.deleteMessage(place.stream, 2);
  });
  one.start();
  await until("it loads what was deleted", () => one.loads === 2);
});

for (const hidden of [false, true]) {
  const what = hidden ? "one stream, but not its subject" : "one stream and its subject";
  Deno.test(`it receives as a user that may read ${what}`, async () => {
    const { stream, subject } = freshStreamNames();
    const subjects: [string] = [hidden ? "another.subject" : subject];
    const users = usersFile({ uses: { replica: { reads: [{ name: stream, subjects }] } } });
    await using nats = await startNats({
      users: users.replaceAll(/\$\w+_NATS_PASSWORD/g, '"secret"'),
    });
    const urlOf = (user: string) => `nats://${user}:secret@127.0.0.1:${nats.port}`;
    const place = { stream, subject, url: urlOf("operator"), codec: json };
    await makeStream(place.url, place);
    await using one = replica({ ...place, url: urlOf("replica") });
    await until("it has loaded", () => one.inbox.ageMs < 5_000);
    await publishSmall(place, smallEvents(150));
    await until("it has them", () => one.taken.size === 150);
    const refusals = one.log.filter((line) => /NATS does not permit/.test(line));
    assert.equal(refusals.length, hidden ? 1 : 0);
  });
}

interface Place {
  url: string;
  stream: string;
  subject: string;
  codec: typeof json;
}

async function freshStream(url = natsUrl): Promise<Place> {
  const names = freshStreamNames();
  await makeStream(url, names);
  return { ...names, url, codec: json };
}

function replica({ url, stream }: Place, { failures = 0 } = {}) {
  const taken = new Map<string, SmallEvent>();
  const { counted, counts } = counting("handled", "duplicate", "unreadable");
  const { log, lines } = collectingLog();
  const link = new NatsLink({ urls: url }, "replica", log);
  let stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const inbox = new ReadOnlyInbox<SmallEvent>({
    name: "replica",
    ...{ link, log, stream, counts, decode: json.decode },
    load: async () => {
      if (failures-- > 0) throw new Error("The owner of the data is down");
      await Promise.resolve(replica.loads++);
    },
    take: (event) => taken.size < taken.set(event.event_id, event).size,
  });
  const stop = async () => {
    stopping.abort();
    await running;
    await link.close();
  };
  const start = () => {
    stopping = new AbortController();
    running = inbox.run(stopping.signal);
  };
  const replica = {
    ...{ inbox, taken, counted, log: lines, stop, start, loads: 0 },
    [Symbol.asyncDispose]: stop,
  };
  start();
  return replica;
}
