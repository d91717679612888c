// A message that JetStream no longer delivers is kept with a copy, whatever happens to the stream.
import assert from "node:assert/strict";
import { readsTermReasons } from "../../shared/nats/pull.ts";
import { ask } from "../support/entitlement.ts";
import { bodyOf, eventOf, messageOf, tooLongForAnIndex } from "../support/events.ts";
import { countLogged } from "../support/logs.ts";
import {
  advisoriesSent,
  advisoryStream,
  advisorySubject,
  consumerInfo,
  freshPlace,
  publishRaw,
  publishTo,
  startNotification,
  untilSent,
} from "../support/notification.ts";
import { durable, type Place } from "../../tools/load/stage.ts";
import { readStream, withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

interface DeadLetter {
  kind: string;
  stream: string;
  consumer: string;
  stream_seq: number;
  deliveries: number | null;
  reason: string | null;
  message_subject: string | null;
  message_headers: Record<string, string[]> | null;
  message_body: Uint8Array | null;
  has_times: boolean;
}

const bad = messageOf({ eventId: "no UUID" });

Deno.test("a terminated message is kept with its headers, its body and the reason", async () => {
  await using place = await freshPlace();
  await using _service = await startNotification(place);
  const headers = { "Nats-Msg-Id": "m-1", "trace_id": "größe \0 \u{1f511}", "empty": "" };
  await publishTo(place, [eventOf()]);
  await publishRaw(place, [{ ...bad, headers }]);
  assert.deepEqual(await untilDeadLetters(place, 1), [{
    kind: "MSG_TERMINATED",
    stream: place.stream,
    consumer: durable,
    stream_seq: 2,
    deliveries: 1,
    reason: await knowsReasons(place) ? "event_id is not a UUID" : null,
    message_subject: place.subject,
    message_headers: { ...wrapped(headers), trace_id: ["größe \ufffd \u{1f511}"] },
    message_body: bad.body,
    has_times: true,
  }]);
});

Deno.test("a message whose deliveries are used up is kept with its headers and its body", async () => {
  await using place = await freshPlace();
  await using _service = await startNotification(place, { NOTIFICATION_NATS_MAX_DELIVER: "1" });
  const event = eventOf({ userId: tooLongForAnIndex() });
  await publishTo(place, [event]);
  assert.deepEqual(await untilDeadLetters(place, 1), [{
    kind: "MAX_DELIVERIES",
    stream: place.stream,
    consumer: durable,
    stream_seq: 1,
    deliveries: 1,
    reason: null,
    message_subject: place.subject,
    message_headers: wrapped({ "Nats-Msg-Id": event.eventId }),
    message_body: bodyOf(event),
    has_times: true,
  }]);
});

Deno.test("an unreadable advisory is acked and logged, and the next one is captured", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place);
  const subject = advisorySubject(place, "MSG_TERMINATED");
  await untilStream(place, advisoryStream(place, "MSG_TERMINATED"));
  const good = {
    id: "1",
    timestamp: "2026-01-02T03:04:05.678Z",
    stream: place.stream,
    consumer: durable,
    stream_seq: 1,
  };
  const unreadable = [
    "not JSON",
    "null",
    "{}",
    { ...good, id: "" },
    { ...good, id: "a\0b" },
    { ...good, id: "x".repeat(3_000) },
    { ...good, timestamp: "0000-01-01T00:00:00Z" },
    { ...good, timestamp: "yesterday" },
    { ...good, stream: "a\0b" },
    { ...good, stream_seq: -1 },
    { ...good, stream_seq: 1e300 },
  ];
  const asBody = (advisory: unknown) =>
    new TextEncoder().encode(typeof advisory === "string" ? advisory : JSON.stringify(advisory));
  const advisories = [...unreadable, { ...good, reason: "with a \0" }];
  await publishRaw({ ...place, subject }, advisories.map((one) => ({ body: asBody(one) })));
  const [kept] = await untilDeadLetters(place, 1);
  assert.deepEqual([kept?.reason, kept?.message_body], ["with a \ufffd", null]);
  await until("all is acked", async () => {
    const own = advisoryStream(place, "MSG_TERMINATED");
    const info = await consumerInfo({ ...place, stream: own }, own);
    return info.num_ack_pending === 0 && info.num_pending === 0;
  });
  const logged = () => countLogged(service.log, /^Advisory \d+ is unreadable/);
  await until("all are logged", () => logged() >= unreadable.length);
  assert.equal(logged(), unreadable.length);
});

Deno.test("an advisory whose message no longer exists is stored without a copy", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place, { NOTIFICATION_NATS_ACK_WAIT: "1s" });
  const release = await holdDeadLetters(place);
  await publishRaw(place, [bad, bad]);
  await until(
    "both are terminated",
    async () => (await advisoriesSent(place)).MSG_TERMINATED === 2,
  );
  await withNats(place.natsUrl, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.deleteMessage(place.stream, 1);
  });
  const problems = () => countLogged(service.log, /^Capturing advisories failed/);
  await until("it notices", () => problems() > 0);
  await new Promise((over) => setTimeout(over, 3_000)); // more than one try
  await release();
  const letters = await untilDeadLetters(place, 2);
  assert.deepEqual(letters.map(({ message_body }) => message_body), [null, bad.body]);
  assert.equal(problems(), 1, "it is logged once");
});

Deno.test("a sequence that a new stream uses again counts as another message", async () => {
  await using place = await freshPlace();
  await using _service = await startNotification(place, { NOTIFICATION_NATS_ACK_WAIT: "1s" });
  await publishRaw(place, [bad]);
  await untilDeadLetters(place, 1);
  await recreateStream(place);
  const other = { body: new TextEncoder().encode("not protobuf") };
  await publishRaw(place, [other]);
  const letters = await untilDeadLetters(place, 2);
  assert.deepEqual(
    letters.map(({ stream_seq, message_body }) => [stream_seq, message_body]),
    [[1, bad.body], [1, other.body]],
  );
});

Deno.test("a message of a new stream with the same sequence is not captured as the old message", async () => {
  await using place = await freshPlace();
  await using _service = await startNotification(place, { NOTIFICATION_NATS_ACK_WAIT: "1s" });
  const release = await holdDeadLetters(place);
  await publishRaw(place, [bad]);
  await until("it is terminated", async () => (await advisoriesSent(place)).MSG_TERMINATED === 1);
  await recreateStream(place);
  await publishTo(place, [eventOf()]);
  await untilSent(place, 1);
  await release();
  const [letter] = await untilDeadLetters(place, 1);
  assert.deepEqual([letter?.stream_seq, letter?.message_body], [1, null]);
});

Deno.test("an advisory that is delivered twice is stored once", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place);
  await publishRaw(place, [bad]);
  await untilDeadLetters(place, 1);
  const own = advisoryStream(place, "MSG_TERMINATED");
  const [advisory] = await readStream(place.natsUrl, own);
  assert.ok(advisory);
  const subject = advisorySubject(place, "MSG_TERMINATED");
  await publishRaw({ ...place, subject }, [{ body: advisory.data }, { body: advisory.data }]);
  await publishRaw(place, [bad]);
  assert.equal((await untilDeadLetters(place, 2)).length, 2);
  const logged = () => countLogged(service.log, / was captured/);
  await until("both are logged", () => logged() >= 2);
  assert.equal(logged(), 2);
  assert.equal(countLogged(service.log, /^Capturing advisories failed/), 0);
});

async function untilDeadLetters({ ownerUrl }: Place, count: number): Promise<DeadLetter[]> {
  let letters: DeadLetter[] = [];
  await until(`${count} are captured`, async () => {
    letters = await ask<DeadLetter>(
      ownerUrl,
      `select kind, stream, consumer, stream_seq::int, deliveries::int, reason,
         message_subject, message_headers, message_body,
         advised_at > now() - interval '1 minute' and created_at >= advised_at
           and message_stored_at <= advised_at as has_times
       from notification_nats_dlq
       order by stream_seq, dlq_id`, // those of one moment are captured in any order
    ).catch(() => []);
    return letters.length >= count;
  });
  return letters.map((letter) => ({
    ...letter,
    message_body: letter.message_body && new Uint8Array(letter.message_body),
  }));
}

/** Makes storing fail until the returned function is called. */
async function holdDeadLetters({ ownerUrl }: Place): Promise<() => Promise<void>> {
  await ask(ownerUrl, "alter table notification_nats_dlq rename column kind to held");
  return async () => {
    await ask(ownerUrl, "alter table notification_nats_dlq rename column held to kind");
  };
}

/** Older versions of nats-server do not pass reasons on. */
function knowsReasons({ natsUrl }: Place): Promise<boolean> {
  return withNats(natsUrl, ({ info }) => Promise.resolve(readsTermReasons(info?.version)));
}

/** Deletes the stream as a lost disk would, but keeps the connection. */
async function recreateStream(place: Place): Promise<void> {
  await withNats(place.natsUrl, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.delete(place.stream);
  });
  await until("it is created again", () => consumerInfo(place).then(() => true, () => false));
}

async function untilStream({ natsUrl }: Place, stream: string): Promise<void> {
  await until(
    "the stream exists",
    () => readStream(natsUrl, stream).then(() => true, () => false),
  );
}

function wrapped(headers: Record<string, string>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
}
