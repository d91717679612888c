// Anybody may publish to the subject of the advisories. Each message is stored or logged as
// unreadable, and never blocks the next one.
import assert from "node:assert/strict";
import fc from "fast-check";
import { ask } from "../support/entitlement.ts";
import type { Message } from "../support/events.ts";
import {
  advisoryStream,
  advisorySubject,
  freshPlace,
  publishRaw,
  startNotification,
} from "../support/notification.ts";
import { durable, type Place } from "../../tools/load/stage.ts";
import { withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";
import { anyText, anyTime, fuzz, longMs } from "./fuzz.ts";

const strangeNames = ["", "a.b", ">", "a b", "no_such_stream", "a/b", "a\r\nPING\r\n"];
const number = fc.oneof(fc.nat(5), fc.integer(), fc.double(), fc.maxSafeInteger());

function advisoryOf(place: Place): fc.Arbitrary<Record<string, unknown>> {
  const broken = fc.record({
    id: anyOf(fc.uuid(), anyText),
    timestamp: anyOf(anyTime),
    stream: anyOf(fc.constantFrom(place.stream, ...strangeNames), anyText),
    consumer: anyOf(fc.constant(durable), anyText),
    stream_seq: anyOf(number),
    deliveries: anyOf(number),
    reason: anyOf(anyText),
  });
  // Only one or two parts are changed, so that the others don't hide the change.
  const names = fc.subarray(
    ["id", "timestamp", "stream", "consumer", "stream_seq", "deliveries", "reason"] as const,
    { minLength: 1, maxLength: 2 },
  );
  return fc.tuple(broken, names).map(([broken, names]) => ({
    id: crypto.randomUUID(),
    ...goodAdvisory(place),
    ...Object.fromEntries(names.map((name) => [name, broken[name]])),
  }));
}

/** The value may also have another type or be absent. */
function anyOf(...values: fc.Arbitrary<unknown>[]): fc.Arbitrary<unknown> {
  const ofOtherType = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constant(undefined));
  return fc.oneof({ weight: 6, arbitrary: fc.oneof(...values) }, {
    weight: 1,
    arbitrary: ofOtherType,
  });
}

Deno.test("any advisory is stored or logged as unreadable, and the next one is captured", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place);
  const own = advisoryStream(place, "MSG_TERMINATED");
  const subject = advisorySubject(place, "MSG_TERMINATED");
  const body = fc.oneof(
    { weight: 6, arbitrary: advisoryOf(place).map((advisory) => JSON.stringify(advisory)) },
    { weight: 1, arbitrary: fc.json() },
    { weight: 1, arbitrary: fc.string({ unit: "binary" }) },
  ).map(messageOf);
  await fuzz(
    fc.asyncProperty(
      fc.array(body, { minLength: 50, maxLength: 50 }),
      async (messages) => void await publishRaw({ ...place, subject }, messages),
    ),
    30,
  );
  const last = { ...goodAdvisory(place), id: crypto.randomUUID() };
  await publishRaw({ ...place, subject }, [messageOf(JSON.stringify(last))]);
  await until("all are captured or logged", () =>
    withNats(place.natsUrl, async (connection) => {
      const manager = await connection.jetstreamManager();
      const { num_ack_pending, num_pending } = await manager.consumers.info(own, own);
      return num_ack_pending === 0 && num_pending === 0;
    }), longMs);
  const kept = await ask(
    place.ownerUrl,
    "select from notification_nats_dlq where advisory_id = $1",
    [last.id],
  );
  assert.equal(kept.length, 1);
  const expected =
    /^Advisory \d+ is unreadable|^MSG_TERMINATED: message|has one replica|^No credentials/;
  const others = service.log.filter(({ level, message }) =>
    level !== "info" && !expected.test(message)
  );
  assert.deepEqual(others, []);
});

function goodAdvisory({ stream }: Place) {
  return { timestamp: "2026-01-02T03:04:05.678Z", stream, consumer: durable, stream_seq: 1 };
}

function messageOf(text: string): Message {
  return { body: new TextEncoder().encode(text) };
}
