// Every message on the subjects of the notification service ends as a notification, as a duplicate
// or as a dead letter, and all valid ones arrive.
import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  readMatchmakingNotification,
  readNotification,
  readPointsNotification,
} from "../../notification/notification.ts";
import { EntitlementEventSchema } from "../../proto/gen/entitlement/v1/entitlement_event_pb.ts";
import { MatchmakingEventSchema } from "../../proto/gen/matchmaking/v1/matchmaking_event_pb.ts";
import { PointsEventSchema } from "../../proto/gen/points/v1/points_event_pb.ts";
import { ask } from "../support/entitlement.ts";
import { bodyOf, eventOf, type Message, publish } from "../support/events.ts";
import {
  advisoriesSent,
  type AdvisoryKind,
  countsOf,
  freshPlace,
  untilAllAcked,
} from "../support/notification.ts";
import {
  matchmakingDurable,
  matchmakingEventOf,
  matchmakingMessageOf,
  matchmakingPlace,
  startWithMatchmaking,
} from "../support/matchmaking_events.ts";
import { pointsEventOf, pointsMessageOf } from "../support/points_events.ts";
import { durable, type Place, pointsDurable, pointsSubjectOf } from "../../tools/load/stage.ts";
import { until } from "../../tools/servers/wait.ts";
import { anyText, fuzz, headerText, longMs, mutated } from "./fuzz.ts";

const incompressible = fc.nat(3).map((i) =>
  crypto.getRandomValues(new Uint8Array(1_500 << i)).toHex()
);
const text = fc.oneof(
  { weight: 9, arbitrary: anyText },
  { weight: 1, arbitrary: incompressible }, // too long for an index of PostgreSQL
  { weight: 1, arbitrary: fc.nat(200_000).map((length) => "x".repeat(length)) },
).map((text) => text.toWellFormed()); // half a character can't be written as protobuf

const int64 = fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.bigInt(-3n, 3n));

const common = {
  eventId: fc.oneof(
    { weight: 4, arbitrary: fc.uuid() },
    { weight: 1, arbitrary: fc.uuid().map((id) => id.toUpperCase()) },
    { weight: 1, arbitrary: fc.constant("01a1eece-e608-7de8-b25d-e13b858611ce") },
    { weight: 1, arbitrary: text },
  ),
  eventType: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  occurredAt: fc.option(
    fc.record({
      seconds: fc.oneof(int64, fc.bigInt(-62_135_596_801n, 253_402_300_800n)),
      nanos: fc.integer({ min: -1, max: 1_000_000_000 }),
    }),
    { nil: undefined },
  ),
  userId: text,
  source: text,
  sourceId: text,
  version: int64,
  traceId: text,
};

const hostileOf = (schema: DescMessage, more: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record({ ...common, ...more }).map(({ occurredAt, ...fields }) =>
    toBinary(schema, create(schema, { ...fields, ...(occurredAt ? { occurredAt } : {}) } as never))
  );

// A kind of event: its subject, its codec, and an event whose id is never the same twice, as that
// would be a duplicate.
interface Kind {
  subjectOf(place: Place): string;
  read(body: Uint8Array): { event_id: string; type: string };
  good(id: string): Uint8Array;
  hostile: fc.Arbitrary<Uint8Array>;
}

const entitlements: Kind = {
  subjectOf: ({ subject }) => subject,
  read: readNotification,
  good: (eventId) => bodyOf(eventOf({ eventId, userId: eventId })),
  hostile: hostileOf(EntitlementEventSchema, { stockKeepingUnit: text }),
};
const points: Kind = {
  subjectOf: pointsSubjectOf,
  read: readPointsNotification,
  good: (event_id) => pointsMessageOf(pointsEventOf({ event_id, user_id: event_id })).body,
  hostile: hostileOf(PointsEventSchema, {
    ...{ unit: text, pointAmount: int64, balance: int64, transactionId: text, reservationId: text },
  }),
};

const matchmaking: Kind = {
  subjectOf: (place) => matchmakingPlace(place).subject,
  read: readMatchmakingNotification,
  good: (event_id) => matchmakingMessageOf({ ...matchmakingEventOf(), event_id }).body,
  hostile: hostileOf(MatchmakingEventSchema, {
    ...{ matchId: text, mode: text, ticketId: text, waitedMs: int64 },
    ...{ eventType: fc.integer({ min: 0, max: 4 }), peerUserIds: fc.array(text, { maxLength: 3 }) },
  }),
};
const kinds = [entitlements, points, matchmaking];

const consumersOf = (place: Place): [Place, string][] => [
  ...[durable, pointsDurable].map((name): [Place, string] => [place, name]),
  [matchmakingPlace(place), matchmakingDurable],
];

const bodies = (kind: Kind) => {
  const good = fc.constant(0).map(() => kind.good(crypto.randomUUID()));
  return fc.oneof(
    fc.record({ kind: fc.constant(kind), isGood: fc.constant(true), body: good }),
    fc.record({ kind: fc.constant(kind), isGood: fc.constant(false), body: kind.hostile }),
    fc.record({ kind: fc.constant(kind), isGood: fc.constant(false), body: mutated(good) }),
    fc.record({
      ...{ kind: fc.constant(kind), isGood: fc.constant(false) },
      body: fc.uint8Array({ maxLength: 300 }),
    }),
  );
};
const headers = fc.dictionary(
  fc.constantFrom("trace_id", "traceparent", "event_type", "aggregate_key", "occurred_at", "X-Any"),
  headerText,
);
const anyMessage = fc.record({
  sent: fc.oneof(...kinds.map(bodies)),
  headers,
  times: fc.constantFrom(1, 1, 1, 2),
});

Deno.test("any message becomes a notification, a duplicate or a dead letter, and valid ones arrive", async () => {
  await using place = await freshPlace();
  // With more deliveries it would take minutes until a refused message becomes a dead letter.
  await using service = await startWithMatchmaking(place, {
    NOTIFICATION_NATS_ACK_WAIT: "2s",
    NOTIFICATION_NATS_MAX_DELIVER: "1",
    NOTIFICATION_DELIVERY_PREDECESSOR_WAIT: "100ms",
  });
  const goodIds = new Set<string>();
  const unnotified = new Set<string>();
  let unreadable = 0;
  let published = 0;
  await fuzz(
    fc.asyncProperty(fc.array(anyMessage, { minLength: 50, maxLength: 50 }), async (messages) => {
      for (const kind of kinds) {
        const ofKind = messages.filter(({ sent }) => sent.kind === kind);
        const all = ofKind.flatMap(({ sent: { body }, headers, times }): Message[] =>
          Array.from({ length: times }, () => ({ body, headers }))
        );
        await publish(place.natsUrl, kind.subjectOf(place), all);
        published += all.length;
        unreadable += all.filter(({ body }) => readOf(kind, body) === undefined).length;
        for (const { sent } of ofKind) {
          const { event_id, type } = readOf(kind, sent.body) ?? {};
          if (sent.isGood && event_id) goodIds.add(event_id);
          if (type === "TicketInvalid" && event_id) unnotified.add(event_id);
        }
      }
    }),
    40,
  );
  for (const [at, name] of consumersOf(place)) await untilAllAcked(at, longMs, name);
  await until("all dead messages are stored", async () => {
    const { MAX_DELIVERIES, MSG_TERMINATED } = await advisoriesOfAll(place);
    return (await countsOf(place)).notification_nats_dlq === MAX_DELIVERIES + MSG_TERMINATED;
  }, longMs);
  await until("all is sent", async () => {
    const { notifications, sent } = await countsOf(place);
    return sent === notifications;
  }, longMs);
  const { processed_events, notifications, notification_dlq } = await countsOf(place);
  assert.ok(unnotified.size > 0 && notifications < processed_events);
  assert.ok(processed_events <= notifications + unnotified.size);
  assert.equal(notification_dlq, 0);
  const { MAX_DELIVERIES, MSG_TERMINATED } = await advisoriesOfAll(place);
  assert.equal(MSG_TERMINATED, unreadable);
  assert.ok(notifications + MAX_DELIVERIES + MSG_TERMINATED <= published);
  assert.ok(MAX_DELIVERIES > 0 && unreadable > 0);
  assert.deepEqual(await missingOf(place, goodIds), []);
  const others =
    /^Message \d+ (can't be read|could not be)|^(MSG|MAX)_\w+: message \d+ was captured/;
  assert.deepEqual(
    service.log.filter(({ level, message }) => level === "error" && !others.test(message)),
    [],
  );
});

async function advisoriesOfAll(place: Place): Promise<Record<AdvisoryKind, number>> {
  const all = await Promise.all(
    consumersOf(place).map(([at, name]) => advisoriesSent(at, name)),
  );
  const sum = (kind: AdvisoryKind) => all.reduce((sum, counts) => sum + counts[kind], 0);
  return { MAX_DELIVERIES: sum("MAX_DELIVERIES"), MSG_TERMINATED: sum("MSG_TERMINATED") };
}

function readOf(kind: Kind, body: Uint8Array): ReturnType<Kind["read"]> | undefined {
  try {
    return kind.read(body);
  } catch {
    return undefined;
  }
}

async function missingOf({ ownerUrl }: Place, ids: Set<string>): Promise<string[]> {
  const sent = await ask<{ event_id: string }>(
    ownerUrl,
    "select event_id from notifications where status = 'SENT' and event_id = any($1)",
    [[...ids]],
  );
  return [...ids.difference(new Set(sent.map(({ event_id }) => event_id)))];
}
