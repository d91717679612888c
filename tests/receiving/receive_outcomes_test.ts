// Every outcome of receiving a message, on a real stream.
import assert from "node:assert/strict";
import { ask } from "../support/entitlement.ts";
import { bodyOf, eventOf, type Message, messageOf, tooLongForAnIndex } from "../support/events.ts";
import {
  advisoriesSent,
  allSent,
  consumerInfo,
  countsOf,
  freshPlace,
  notificationsOf,
  outcomesOf,
  publishRaw,
  publishTo,
  startNotification,
  untilAllAcked,
  untilSent,
} from "../support/notification.ts";
import { until } from "../../tools/servers/wait.ts";

const noAdvisories = { MAX_DELIVERIES: 0, MSG_TERMINATED: 0 };

Deno.test("an event becomes one notification with all of its fields, and is acked", async () => {
  await using place = await freshPlace();
  await using _service = await startNotification(place);
  const event = eventOf({ version: 1, userId: "ann", stockKeepingUnit: "größe-密-🔑" });
  await publishTo(place, [event]);
  await untilSent(place, 1);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(1));
  const rows = await ask(
    place.ownerUrl,
    "select event_id, user_id, type, occurred_at, payload_json from notifications",
  );
  assert.deepEqual(rows, [{
    event_id: event.eventId,
    user_id: "ann",
    type: "EntitlementGranted",
    occurred_at: event.occurredAt,
    payload_json: {
      event_id: event.eventId,
      event_type: "EntitlementGranted",
      occurred_at: "2026-01-02T03:04:05.678000Z",
      user_id: "ann",
      stock_keeping_unit: "größe-密-🔑",
      source: "purchase",
      source_id: "p-1",
      version: 1,
      trace_id: event.traceId,
    },
  }]);
});

Deno.test("duplicates change nothing and cause no advisory", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place, {
    NOTIFICATION_NATS_ACK_WAIT: "1s",
    NOTIFICATION_NATS_MAX_DELIVER: "2",
  });
  const message = messageOf();
  await publishRaw(place, [message]);
  await untilSent(place, 1);
  const [before] = await notificationsOf(place);
  // One message alone, and then many at once.
  await publishRaw(place, [message]);
  await untilAllAcked(place);
  await publishRaw(place, Array.from({ length: 300 }, () => message));
  await untilAllAcked(place);
  const { num_redelivered, delivered } = await consumerInfo(place);
  assert.deepEqual([delivered.stream_seq, num_redelivered], [302, 0]);
  assert.equal(await outcomesOf(service, "duplicate"), 301);
  assert.deepEqual(await notificationsOf(place), [before]);
  assert.deepEqual(await countsOf(place), allSent(1));
  assert.deepEqual(await advisoriesSent(place), noAdvisories);
  assert.deepEqual(service.log.filter(({ level }) => level === "error"), []);
});

const unreadable: [string, Message][] = [
  ["not protobuf", { body: new TextEncoder().encode("not protobuf") }],
  ["an empty body", { body: new Uint8Array() }],
  ["cut off", { body: bodyOf(eventOf()).subarray(0, 60) }],
  ["no UUID", messageOf({ eventId: "not-a-uuid" })],
  ["no time", { body: withoutTime() }],
  ["a time before the year 1", messageOf({ occurredAt: new Date("-000001-01-01T00:00:00Z") })],
  ["a time after the year 9999", messageOf({ occurredAt: new Date("+010000-01-01T00:00:00Z") })],
  ["a version beyond 2^53", { body: withVersion(2n ** 60n) }],
  ["a NUL, which PostgreSQL can't store", messageOf({ userId: "a\0b" })],
];

Deno.test("an unreadable message is terminated at its first delivery, and nothing is stored", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place, { NOTIFICATION_NATS_ACK_WAIT: "1s" });
  await publishRaw(place, unreadable.map(([, message]) => message));
  await publishTo(place, [eventOf()]);
  await untilSent(place, 1);
  await untilAllAcked(place);
  const { delivered, num_redelivered } = await consumerInfo(place);
  const messages = unreadable.length + 1;
  assert.deepEqual([delivered.consumer_seq, num_redelivered], [messages, 0]);
  await until(
    "the advisories are stored",
    async () => (await countsOf(place)).notification_nats_dlq === unreadable.length,
  );
  assert.deepEqual(await countsOf(place), {
    ...allSent(1),
    notification_nats_dlq: unreadable.length,
  });
  assert.deepEqual(await advisoriesSent(place), {
    ...noAdvisories,
    MSG_TERMINATED: unreadable.length,
  });
  assert.equal(await outcomesOf(service, "unreadable"), unreadable.length);
});

Deno.test("an event of an unknown type is stored under its number, and sent", async () => {
  await using place = await freshPlace();
  await using _service = await startNotification(place);
  await publishTo(place, [
    eventOf({ eventType: 77 as never }),
    eventOf({ eventType: 0, version: 2 }),
  ]);
  await untilSent(place, 2);
  assert.deepEqual((await notificationsOf(place)).map(({ type }) => type), ["77", "0"]);
  assert.deepEqual(await advisoriesSent(place), noAdvisories);
});

Deno.test("an event that the database refuses is tried again later and delays no other event", async () => {
  await using place = await freshPlace();
  await ask(
    place.ownerUrl,
    `create function refuse() returns trigger language plpgsql as
       $$ begin raise exception 'refused'; end $$;
     create trigger refuse before insert on notifications
       for each row when (new.user_id = 'cursed') execute function refuse()`,
  );
  await using service = await startNotification(place);
  const others = Array.from({ length: 50 }, (_, i) => eventOf({ userId: `user-${i}` }));
  const events = others.toSpliced(25, 0, eventOf({ userId: "cursed" }));
  await publishTo(place, events);
  await untilSent(place, 50);
  assert.deepEqual(await countsOf(place), allSent(50));
  await ask(place.ownerUrl, "drop trigger refuse on notifications");
  await untilSent(place, 51);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(51));
  assert.equal(await outcomesOf(service, "failed"), 1);
  assert.deepEqual(await advisoriesSent(place), noAdvisories);
});

Deno.test("an event that fails at every delivery is redelivered with growing delays and becomes a dead letter", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place, {
    NOTIFICATION_NATS_ACK_WAIT: "1s",
    NOTIFICATION_NATS_MAX_DELIVER: "2",
  });
  await publishTo(place, [eventOf({ userId: tooLongForAnIndex() }), eventOf()]);
  await untilSent(place, 1);
  await until("the dead letter", async () => (await countsOf(place)).notification_nats_dlq === 1);
  assert.deepEqual(await countsOf(place), { ...allSent(1), notification_nats_dlq: 1 });
  assert.deepEqual(await advisoriesSent(place), { ...noAdvisories, MAX_DELIVERIES: 1 });
  const attempts = service.log.filter(({ message }) => / could not be stored/.test(message))
    .map(({ time }) => Date.parse(String(time)));
  assert.equal(attempts.length, 2);
  assert.ok(Number(attempts[1]) - Number(attempts[0]) >= 1_900, "it was delivered again at once");
});

Deno.test("before the migrations nothing is lost: messages wait until the tables exist", async () => {
  await using place = await freshPlace();
  await ask(place.ownerUrl, "alter table processed_events rename to not_there_yet");
  await using service = await startNotification(place, {
    NOTIFICATION_NATS_ACK_WAIT: "1s",
    NOTIFICATION_NATS_MAX_DELIVER: "2",
  });
  await publishTo(place, Array.from({ length: 20 }, (_, i) => eventOf({ userId: `user-${i}` })));
  const isAway = () => service.log.some(({ message }) => /^Database unavailable/.test(message));
  await until("it notices", isAway);
  const { delivered, num_pending } = await consumerInfo(place);
  assert.deepEqual([delivered.stream_seq, num_pending], [1, 19], "only one message finds out");
  await new Promise((over) => setTimeout(over, 3_000)); // longer than ack-wait × max-deliver
  await ask(place.ownerUrl, "alter table not_there_yet rename to processed_events");
  await untilSent(place, 20);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(20));
  assert.equal((await consumerInfo(place)).num_redelivered, 0);
  assert.deepEqual(await advisoriesSent(place), noAdvisories);
});

// Written by hand: the generated code can't write these bytes, but another program might.
function withoutTime(): Uint8Array {
  const id = new TextEncoder().encode(crypto.randomUUID());
  return new Uint8Array([0x0a, id.length, ...id]);
}

function withVersion(version: bigint): Uint8Array {
  const varint: number[] = [];
  for (let rest = version; rest > 0n; rest >>= 7n) {
    varint.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
  }
  return new Uint8Array([...bodyOf(eventOf({ version: 0 })), 0x40, ...varint]);
}
