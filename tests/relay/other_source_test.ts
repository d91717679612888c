// The relay publishes events from a source that is not a table, and is as safe with it.
import assert from "node:assert/strict";
import type { EventRow, EventType } from "../../shared/outbox/event_types.ts";
import type { EventSource } from "../../shared/outbox/source.ts";
import { startNats } from "../../tools/servers/nats.ts";
import { until } from "../../tools/servers/wait.ts";
import { type QuickOptions, type RunningRelay, startRelayFrom } from "../support/relays.ts";
import { freshStreamNames, natsUrl, readStream, type StreamNames } from "../support/streams.ts";
import { memorySource } from "./memory_source.ts";

const payload = { occurred_at: "2026-01-02T03:04:05.678901Z", trace_id: "t-1", users: ["ann"] };

Deno.test("events of another source are published once and settled, without order", async () => {
  const names = freshStreamNames();
  const source = memorySource();
  const ids = Array.from({ length: 500 }, () => source.add("Matched", payload));
  await using relay = startFrom(source, names);
  await until("all are settled", () => source.entries.size === 0);
  ids.push(source.add("Matched", payload));
  relay.toRelay.wake.trigger();
  await until("the new one is settled", () => source.entries.size === 0);
  const stored = await readStream(natsUrl, names.stream);
  assert.deepEqual(stored.map(({ header }) => header.get("Nats-Msg-Id")).sort(), ids.toSorted());
  for (const { subject, header } of stored) {
    assert.equal(subject, names.subject);
    assert.equal(header.has("aggregate_key"), false);
    assert.equal(header.get("trace_id"), "t-1");
  }
  assert.deepEqual([source.takenOver, source.failed], [[], []]);
});

Deno.test("an event that a relay published before it died is published again under its id, and is in the stream once", async () => {
  const names = freshStreamNames();
  const source = memorySource();
  const ids = Array.from({ length: 20 }, () => source.add("Matched", payload));
  const dying = { ...source, settle: () => Promise.reject(new Error("the process is dying")) };
  const relay = startFrom(dying, names);
  await until("all are published", async () => await countOf(names) === ids.length);
  await relay.stop(0);
  assert.equal(source.entries.size, ids.length);
  source.expire();
  await using _other = startFrom(source, names);
  await until("all are settled", () => source.entries.size === 0);
  assert.deepEqual(source.takenOver.sort(), ids.toSorted());
  assert.equal(await countOf(names), ids.length);
});

Deno.test("a relay that lost its lease settles nothing, and its event is published by the other", async () => {
  const names = freshStreamNames();
  const source = memorySource();
  source.add("Matched", payload);
  const settled: Set<string>[] = [];
  let isOver = false;
  const slow: EventSource<EventRow> = {
    ...source,
    claim: (limit, context) =>
      source.entries.values().some(({ token }) => token)
        ? Promise.resolve({ rows: [], more: false })
        : source.claim(limit, context),
    settle: async (settlements) => {
      if (!isOver) throw new Error("it is frozen");
      const owned = await source.settle(settlements);
      settled.push(owned);
      return owned;
    },
  };
  await using _slow = startFrom(slow, names, { worker: "slow" });
  await until("it is published", async () => await countOf(names) === 1);
  source.expire();
  await using _quick = startFrom(source, names);
  await until("the other settles it", () => source.entries.size === 0);
  isOver = true;
  await until("the first one settles, too late", () => settled.length > 0);
  assert.deepEqual(settled, [new Set()]);
  assert.equal(source.takenOver.length, 1);
  assert.equal(await countOf(names), 1);
});

Deno.test("an outage of NATS counts no attempt, and an event that can't be encoded fails alone", async () => {
  await using nats = await startNats();
  const names = freshStreamNames();
  const source = memorySource();
  await using _relay = startFrom(source, names, {}, nats.url);
  source.add("Matched", payload);
  await until("the first is settled", () => source.entries.size === 0);
  await nats.kill();
  const bad = source.add("Matched", "not an object");
  const ids = Array.from({ length: 10 }, () => source.add("Matched", payload));
  await nats.start();
  await until("the others are settled", () => source.entries.size === 0);
  assert.deepEqual(source.failed, [{ id: bad, error: "The payload is not an object" }]);
  assert.deepEqual(source.retried, []);
  const stored = await readStream(nats.url, names.stream);
  assert.deepEqual(
    stored.slice(1).map(({ header }) => header.get("Nats-Msg-Id")).sort(),
    ids.toSorted(),
  );
});

function startFrom(
  source: EventSource<EventRow>,
  { stream, subject }: StreamNames,
  options: QuickOptions = {},
  url: string = natsUrl,
): RunningRelay<EventRow> {
  const encode: EventType["encode"] = (_, { users }) => ({
    body: new TextEncoder().encode(JSON.stringify(users)),
  });
  const types = new Map([["Matched", { subject, encode }]]);
  return startRelayFrom({ natsUrl: url, stream }, () => source, types, options);
}

async function countOf({ stream }: StreamNames): Promise<number> {
  return (await readStream(natsUrl, stream).catch(() => [])).length;
}
