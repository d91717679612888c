import assert from "node:assert/strict";
import type { Log } from "../process/log.ts";
import { withoutPauses } from "../process/timers_testing.ts";
import { inboxStreams } from "./durables.ts";
import { EventStore } from "./event_store.ts";
import type { InboxEvent } from "./inbox.ts";

const eventOf = (event_id: string) => ({ event_id, payload: {} });
const outage = () => new Error("Connection terminated");

Deno.test("events wait while the database is unavailable, which is reported once", async () => {
  const { store, abandon, reports } = storing([outage(), outage(), outage()]);
  assert.equal(store.isAvailable, false);
  const stored = await withoutPauses(() =>
    Promise.all(["a", "b", "c"].map((id) => store.store(eventOf(id))))
  );
  assert.deepEqual(stored, [true, true, true]);
  assert.ok(store.isAvailable);
  assert.deepEqual(reports, ["unavailable", "available"]);
  abandon.abort();
});

Deno.test("an event that the database refuses is rejected, and those of its batch are stored", async () => {
  const { store } = storing([], new Set(["b"]));
  const outcomes = await Promise.allSettled(["a", "b", "c"].map((id) => store.store(eventOf(id))));
  assert.deepEqual(outcomes.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  assert.ok(store.isAvailable, "it has answered");
});

Deno.test("two messages of one event are stored one after the other, and the second is a duplicate", async () => {
  const { store, batches } = storing([]);
  const stored = await Promise.all(["a", "a", "b"].map((id) => store.store(eventOf(id))));
  assert.deepEqual(stored, [true, false, true]);
  assert.deepEqual(batches, [["a", "b"], ["a"]]);
});

Deno.test("a stop ends the wait for the database", async () => {
  const { store, abandon } = storing(Array.from({ length: 100 }, outage));
  const waiting = store.store(eventOf("a"));
  abandon.abort();
  await assert.rejects(waiting, /Connection terminated/);
});

// Fails as often as there are failures, and always for the refused ids.
function storing(failures: Error[], refused = new Set<string>()) {
  const seen = new Set<string>();
  const batches: string[][] = [];
  const reports: string[] = [];
  const report = (message: string) => void reports.push(message.split(/[ ,]/)[1] ?? "");
  const log = { error: report, info: report } as unknown as Log;
  const abandon = new AbortController();
  const none = { inc: () => {} };
  const stream = { name: "s", subjects: ["s"] as [string], duplicateWindowMs: 1, replicas: 1 };
  const store = new EventStore<InboxEvent>({ log, abandon: abandon.signal }, {
    ...inboxStreams(stream, { durable: "d", ackWaitMs: 1_000, maxDeliver: 1 }),
    name: "test",
    batch: "test",
    decode: () => eventOf(""),
    store: (events) => {
      const failure = failures.shift();
      if (failure) return Promise.reject(failure);
      if (events.some(({ event_id }) => refused.has(event_id))) {
        return Promise.reject(new Error("invalid input syntax"));
      }
      batches.push(events.map(({ event_id }) => event_id));
      return Promise.resolve(
        events.map(({ event_id }) => seen.size < seen.add(event_id).size),
      );
    },
    counts: { handled: none, duplicate: none, unreadable: none, failed: none },
  });
  return { store, abandon, reports, batches };
}
