// Notifications of one key are sent in the order of their versions, in whatever order they were
// received, and a delay of one key does not delay another.
import assert from "node:assert/strict";
import { aggregateKeyOf } from "../../proto/entitlement/aggregate_key.ts";
import { collecting, receive, startDelivery, untilAllAre } from "../support/deliveries.ts";
import { ask } from "../support/entitlement.ts";
import { type Event, eventOf, eventsOf } from "../support/events.ts";
import { countsOf, freshPlace, notificationsOf } from "../support/notification.ts";
import type { Place } from "../../tools/load/stage.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("while a version is retried, the later versions of its key wait, and other keys do not", async () => {
  await using place = await freshPlace();
  const { sent, send } = collecting();
  let works = false;
  await using _delivery = startDelivery(
    place,
    (one, signal) =>
      works || one.payload["version"] !== 1 || one.user_id !== "ann"
        ? send(one, signal)
        : Promise.reject(new Error("not now")),
    { maxAttempts: 1_000 },
  );
  await receive(place, [[1, 2, 3].map((version) => eventOf({ version }))]);
  await until("it is tried again", async () => {
    const [first] = await notificationsOf(place);
    return (first?.attempt_count ?? 0) >= 3;
  });
  await receive(place, [eventsOf({ users: 30, versions: 3 })]);
  await until("all other keys are sent", () => sent.length === 90);
  assert.ok(sent.every(({ user_id }) => user_id !== "ann"));
  works = true;
  await untilAllAre(place, "SENT");
  assertInOrder(sent.map(({ payload }) => payload));
});

Deno.test("when a version has failed, the later versions are sent", async () => {
  await using place = await freshPlace();
  const { sent, send } = collecting();
  await using _delivery = startDelivery(
    place,
    (one, signal) =>
      one.payload["version"] === 1 ? Promise.reject(new Error("never")) : send(one, signal),
  );
  await receive(place, [[1, 2, 3].map((version) => eventOf({ version }))]);
  const rows = await untilAllAre(place, "SENT", "FAILED");
  assert.deepEqual(rows.map(({ status }) => status), ["FAILED", "SENT", "SENT"]);
  assert.deepEqual(sent.map(({ payload }) => payload["version"]), [2, 3]);
});

Deno.test("version 2 that is stored before version 1 waits for it", async () => {
  await using place = await freshPlace();
  const { sent, send } = collecting();
  await using _delivery = startDelivery(place, send);
  const [first, second, third] = [1, 2, 3].map((version) => eventOf({ version })) as [
    Event,
    Event,
    Event,
  ];
  await receive(place, [[third]]);
  await receive(place, [[second, eventOf({ userId: "other" })]]);
  await until("the other user's is sent", () => sent.length === 1);
  assert.deepEqual(await dueOf(place), [], "none of the two may go");
  await receive(place, [[first]]);
  await untilAllAre(place, "SENT");
  assert.deepEqual(sent.slice(1).map(({ payload }) => payload["version"]), [1, 2, 3]);
});

Deno.test("versions that are stored at the same time never wait for one that is already stored", async () => {
  await using place = await freshPlace();
  const events = eventsOf({ users: 60, versions: 8 });
  for (let round = 0; round < 5; round++) {
    const ofRound = events.map((event) => ({
      ...event,
      eventId: crypto.randomUUID(),
      stockKeepingUnit: `sku-${round}`,
    }));
    const batches = Array.from(
      { length: 8 },
      (_, replica) => shuffled(ofRound.filter((_, i) => Math.floor(i / 7) % 8 === replica)),
    );
    await receive(place, batches); // a deadlock would be an error here
  }
  const waiting = (await notificationsOf(place)).filter(({ next_retry_at }) => next_retry_at);
  assert.deepEqual(waiting, []);
  const { sent, send } = collecting();
  await using _delivery = startDelivery(place, send);
  await untilAllAre(place, "SENT");
  assert.equal(sent.length, 5 * events.length);
  assertInOrder(sent.map(({ payload }) => payload));
});

Deno.test("replicas that receive the same events at the same time store each once", async () => {
  await using place = await freshPlace();
  const events = eventsOf({ users: 50, versions: 10 });
  const results = await receive(
    place,
    Array.from({ length: 6 }, () => shuffled(events)),
  );
  assert.equal(results.flat().filter(Boolean).length, events.length, "each is new to one of them");
  const { processed_events, notifications } = await countsOf(place);
  assert.deepEqual([processed_events, notifications], [events.length, events.length]);
});

Deno.test("version 2 is sent alone if version 1 is not received in time", async () => {
  await using place = await freshPlace();
  const { sent, send } = collecting();
  await using _delivery = startDelivery(place, send);
  await receive(place, [[eventOf({ version: 2 })]], 700);
  const [row] = await untilAllAre(place, "SENT");
  const waitedMs = Number(row?.sent_at) - Number(row?.created_at);
  assert.ok(waitedMs >= 650 && waitedMs < 5_000, `${waitedMs}`);
  await receive(place, [[eventOf({ version: 1 })]]); // late, but not lost
  await untilAllAre(place, "SENT");
  assert.deepEqual(sent.map(({ payload }) => payload["version"]), [2, 1]);
});

Deno.test("a predecessor that is received too late does not change the backoff of its successor", async () => {
  await using place = await freshPlace();
  const hour = { baseMs: 3_600_000, maxMs: 3_600_000, minMs: 0, jitterMin: 1, jitterMax: 1 };
  await using _delivery = startDelivery(
    place,
    ({ payload }) => payload["version"] === 2 ? Promise.reject(new Error("full")) : done,
    { backoff: hour },
  );
  await receive(place, [[eventOf({ version: 2 })]], 50);
  const second = async () => (await notificationsOf(place)).find(({ version }) => version === 2);
  await until("it was tried", async () => (await second())?.attempt_count === 1);
  const before = await second();
  await receive(place, [[eventOf({ version: 1 })]]);
  await until("the late one is sent", async () => (await countsOf(place)).sent === 1);
  assert.deepEqual(await second(), before);
});

Deno.test("a notification that was sent or has failed no longer awaits a predecessor", async () => {
  await using place = await freshPlace();
  await using _delivery = startDelivery(
    place,
    ({ user_id }) => user_id === "bob" ? Promise.reject(new Error("never")) : done,
  );
  await receive(place, [["ann", "bob"].map((userId) => eventOf({ userId, version: 2 }))], 50);
  await untilAllAre(place, "SENT", "FAILED");
  assert.deepEqual(
    await ask(place.ownerUrl, "select version from notifications where awaits_predecessor"),
    [],
  );
});

Deno.test("a version does not wait for a predecessor that was sent or is in the same batch", async () => {
  await using place = await freshPlace();
  const { sent, send } = collecting();
  await using _delivery = startDelivery(place, send);
  await receive(place, [[eventOf({ version: 2 }), eventOf({ version: 1 })]]);
  await untilAllAre(place, "SENT");
  await receive(place, [[eventOf({ version: 3 })]]);
  await until("version 3 is sent", () => sent.length === 3);
  assertInOrder(sent.map(({ payload }) => payload));
});

// The oldest row of a key may be a later version. Many such rows at the beginning of the claim
// order must not hide the earlier versions for which they wait.
for (
  const { batchSize, users, versions } of [
    { batchSize: 20, users: 40, versions: 6 },
    { batchSize: 1, users: 1, versions: 2 },
  ]
) {
  Deno.test(`the delivery goes on when ${users} rows wait for rows that were stored later, in batches of ${batchSize}`, async () => {
    await using place = await freshPlace();
    const events = eventsOf({ users, versions });
    for (let version = versions; version > 0; version--) {
      await receive(place, [events.filter((event) => event.version === version)]);
    }
    const { sent, send } = collecting();
    await using _delivery = startDelivery(place, send, { batchSize });
    await untilAllAre(place, "SENT");
    assert.equal(sent.length, events.length);
    assertInOrder(sent.map(({ payload }) => payload));
  });
}

const done = Promise.resolve();

function dueOf({ ownerUrl }: Place): Promise<unknown[]> {
  return ask(
    ownerUrl,
    `select user_id, version from notifications
     where status = 'PENDING' and (next_retry_at is null or next_retry_at < now())
       and not exists (
         select from notifications earlier
         where earlier.aggregate_key = notifications.aggregate_key
           and earlier.version < notifications.version
           and earlier.unfinished)`,
  );
}

function assertInOrder(payloads: Record<string, unknown>[]): void {
  const last = new Map<string, number>();
  for (const { user_id, stock_keeping_unit, version } of payloads) {
    const key = aggregateKeyOf(String(user_id), String(stock_keeping_unit));
    assert.equal(version, (last.get(key) ?? 0) + 1, `the next of ${key}`);
    last.set(key, Number(version));
  }
}

function shuffled<Item>(items: Item[]): Item[] {
  return items.map((item) => ({ item, place: Math.random() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ item }) => item);
}
