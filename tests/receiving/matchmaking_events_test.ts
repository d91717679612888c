// The events of matchmaking, on a stream of their own: from a message to the inbox.
import { create, toBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { MatchmakingEventSchema } from "../../proto/gen/matchmaking/v1/matchmaking_event_pb.ts";
import { type Notification, readMatchmakingNotification } from "../../notification/notification.ts";
import { receiveEvents } from "../../notification/receive_events.ts";
import { rememberUnnotified } from "../../notification/remember_unnotified.ts";
import type { MatchmakingEventFields } from "../../proto/matchmaking/decode.ts";
import { openFresh } from "../support/databases.ts";
import { matchmakingKeyOf } from "../../proto/matchmaking/aggregate_key.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { ofNotification, outcomes, sendBack, untilDead } from "../operators/dead_letters.ts";
import { call } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import { eventOf } from "../support/events.ts";
import {
  matchmakingConsumer,
  matchmakingDurable,
  matchmakingEventOf,
  matchmakingMessageOf,
  matchmakingPlace,
  matchmakingSettings,
  publishMatchmaking,
  startWithMatchmaking,
} from "../support/matchmaking_events.ts";
import {
  allSent,
  countsOf,
  freshPlace,
  notificationsOf,
  publishTo,
  settingsOf,
  startNotification,
  untilSent,
} from "../support/notification.ts";
import { failingSends, look, operate } from "../support/stack.ts";
import { withNats } from "../support/streams.ts";

const debug = { NOTIFICATION_DEBUG_ENABLED: "true" };
const advisoryLayer = `${ofNotification}?layer=advisory`;

const untilSettled = (place: Parameters<typeof matchmakingConsumer>[0], messages: number) =>
  until("all is settled", async () => {
    const { ack_floor } = await matchmakingConsumer(place);
    return ack_floor.stream_seq === messages;
  });

Deno.test("matches and expired tickets become notifications, each once, and broken tickets none", async () => {
  await using place = await freshPlace();
  await using service = await startWithMatchmaking(place, debug);
  await using _second = await startService("notification", {
    ...settingsOf(place),
    ...matchmakingSettings(place),
  });
  const found = matchmakingEventOf({ user_id: "a:b%" });
  const ofPeer = matchmakingEventOf({
    ...{ user_id: "bob", match_id: found.match_id, peer_user_ids: ["a:b%"] },
  });
  const expired = matchmakingEventOf({ user_id: "ann", event_type: "TicketExpired" });
  const invalid = matchmakingEventOf({ user_id: "", event_type: "TicketInvalid" });
  const events = [found, ofPeer, expired, invalid];
  // Without an id for JetStream, which would drop what comes again.
  const messages = events.map((event) => ({ body: matchmakingMessageOf(event).body }));
  for (let delivery = 0; delivery < 3; delivery++) await publishMatchmaking(place, messages);
  await untilSettled(place, 12);
  await untilSent(place, 3);
  assert.deepEqual(await countsOf(place), { ...allSent(3), processed_events: 4 });

  const rows = await notificationsOf(place);
  assert.deepEqual(
    rows.map(({ event_id, type, aggregate_key, version }) =>
      `${event_id} ${type} ${aggregate_key} ${version}`
    ).toSorted(),
    [found, ofPeer, expired].map(({ event_id, event_type, user_id, ticket_id }) =>
      `${event_id} ${event_type} ${matchmakingKeyOf(user_id, ticket_id)} 1`
    ).toSorted(),
  );
  const { notifications: [shown] } = await look(service.url, "/debug/notification/inbox/a:b%25");
  assert.deepEqual([shown.type, shown.payload], ["MatchFound", found]);
  const { events: [ofUser] } = await look(
    service.url,
    "/debug/notification/timeline?user_id=ann",
  );
  assert.deepEqual([ofUser.type, ofUser.stock_keeping_unit, ofUser.status], [
    ...["TicketExpired", expired.ticket_id, "SENT"],
  ]);
});

Deno.test("the log has the match and its peers, an expired ticket has neither", async () => {
  await using place = await freshPlace();
  await using service = await startWithMatchmaking(place, { LOG_USER_IDS: "hashed" });
  const found = matchmakingEventOf({
    user_id: "ann-of-the-log",
    peer_user_ids: ["bob-of-the-log"],
  });
  const expired = matchmakingEventOf({ event_type: "TicketExpired" });
  await publishMatchmaking(place, [found, expired].map(matchmakingMessageOf));
  await untilSent(place, 2);
  const lineOf = ({ event_id }: { event_id: string }) =>
    service.log.find((line) => line["event_id"] === event_id) ?? { message: "" };
  const line: Record<string, unknown> = { ...lineOf(found) };
  assert.deepEqual([line["mode"], line["match_id"], line["ticket_id"]], [
    ...["rank", found.match_id, found.ticket_id],
  ]);
  assert.equal((line["peer_user_ids_sha256"] as string[]).length, 1);
  const { match_id, peer_user_ids_sha256 } = lineOf(expired) as Record<string, unknown>;
  assert.deepEqual([match_id, peer_user_ids_sha256], [undefined, undefined]);
  assert.ok(!JSON.stringify(service.log).includes("-of-the-log"));
});

Deno.test("a batch with broken tickets tells of each event whether it was new", async () => {
  await using tables = await openFresh("notification");
  const { database } = tables;
  const notify = async (events: Notification[]) =>
    (await receiveEvents(database, events, { predecessorWaitMs: 1_000 })).result;
  const store = (...events: MatchmakingEventFields[]) =>
    rememberUnnotified(
      database,
      events.map((event) => readMatchmakingNotification(matchmakingMessageOf(event).body)),
      notify,
    );
  const [found, other] = [matchmakingEventOf(), matchmakingEventOf()];
  const [broken, another] = ["", "ann"]
    .map((user_id) => matchmakingEventOf({ user_id, event_type: "TicketInvalid" })) as [
      MatchmakingEventFields,
      MatchmakingEventFields,
    ];
  assert.deepEqual(await store(broken), [true]);
  assert.deepEqual(await store(found, broken), [true, false]);
  assert.deepEqual(await store(other, broken, found), [true, false, false]);
  assert.deepEqual(await store(found, another, broken), [false, true, false]);
});

Deno.test("an event of a type to come is stored under its number", async () => {
  await using place = await freshPlace();
  await using _service = await startWithMatchmaking(place);
  const fields = { eventId: crypto.randomUUID(), eventType: 99, userId: "ann", ticketId: "rank-7" };
  const occurredAt = timestampFromDate(new Date());
  const event = create(MatchmakingEventSchema, { ...fields, occurredAt } as never);
  await publishMatchmaking(place, [{ body: toBinary(MatchmakingEventSchema, event) }]);
  await untilSent(place, 1);
  const [{ type, event_id } = {}] = await notificationsOf(place);
  assert.deepEqual([type, event_id], ["99", fields.eventId]);
});

Deno.test("a message that is no event of matchmaking is terminated, kept, and counted in the status", async () => {
  await using place = await freshPlace();
  await using service = await startWithMatchmaking(place, debug);
  await publishMatchmaking(place, [{ body: new Uint8Array([255]) }]);
  const [dead] = await untilDead(service.url, advisoryLayer, 1);
  assert.equal(dead?.event_id, null);
  const kept = await ask(place.ownerUrl, "select stream, consumer from notification_nats_dlq");
  assert.deepEqual(kept, [
    { stream: matchmakingPlace(place).stream, consumer: matchmakingDurable },
  ]);
  const status = await look(service.url, "/debug/notification/status");
  assert.deepEqual(
    [status.errors.length, status.undelivered_matchmaking, status.unacknowledged_matchmaking],
    [1, 0, 0],
  );
  const { text } = await call(`${service.url}/metrics`);
  assert.match(text, /^notification_stream_pending_current\{events="matchmaking"\} 0$/m);
});

Deno.test("an event that JetStream gave up on is received from its copy, also when matchmaking is disabled by then", async () => {
  await using place = await freshPlace();
  const quick = { NOTIFICATION_NATS_MAX_DELIVER: "1", NOTIFICATION_NATS_ACK_WAIT: "1s" };
  const service = await startWithMatchmaking(place, { ...debug, ...quick });
  await ask(
    place.ownerUrl,
    "alter table processed_events add constraint nothing check (false)",
  );
  const [found, broken] = [
    matchmakingEventOf(),
    matchmakingEventOf({ event_type: "TicketInvalid" }),
  ];
  await publishMatchmaking(place, [found, broken].map(matchmakingMessageOf));
  const dead = await untilDead(service.url, advisoryLayer, 2);
  assert.deepEqual(
    new Set(dead.map(({ event_id }) => event_id)),
    new Set([found.event_id, broken.event_id]),
  );
  await ask(place.ownerUrl, "alter table processed_events drop constraint nothing");
  await service.stop();
  const { subject } = matchmakingPlace(place);
  await using again = await startNotification(place, {
    ...debug,
    ...quick,
    NOTIFICATION_MATCHMAKING_SUBJECT: subject,
  });
  const ids = dead.map(({ id }) => id);
  const answer = await operate(again.url, sendBack, { layer: "advisory", ids });
  assert.deepEqual(outcomes(answer), ["SENT_BACK", "SENT_BACK"]);
  await untilSent(place, 1);
  const { processed_events, notifications } = await countsOf(place);
  assert.deepEqual([processed_events, notifications], [2, 1]);
});

Deno.test("a match that can't be sent is a dead letter, and keeps its key when it is sent back", async () => {
  await using place = await freshPlace();
  const service = await startWithMatchmaking(place, { ...failingSends, ...debug });
  const event = matchmakingEventOf({ user_id: "unlucky:ann" });
  await publishMatchmaking(place, [matchmakingMessageOf(event)]);
  const [dead] = await untilDead(service.url, ofNotification, 1);
  assert.deepEqual([dead?.layer, dead?.payload], ["delivery", event]);
  await service.stop();
  await ask(place.ownerUrl, "delete from notifications"); // as retention does
  await using again = await startWithMatchmaking(place, debug);
  await operate(again.url, sendBack, { layer: "delivery", ids: [dead?.id] });
  await untilSent(place, 1);
  const [{ aggregate_key, version } = {}] = await notificationsOf(place);
  assert.deepEqual([aggregate_key, version], [
    matchmakingKeyOf("unlucky:ann", event.ticket_id),
    1,
  ]);
});

Deno.test("while matchmaking is disabled nothing of it is made or read", async () => {
  await using place = await freshPlace();
  const { NOTIFICATION_MATCHMAKING_ENABLED: _, ...names } = matchmakingSettings(place);
  const { stream, subject } = matchmakingPlace(place);
  const service = await startNotification(place, { ...names, ...debug });
  const streamsHere = () =>
    withNats(place.natsUrl, async (connection) => {
      const { streams } = await connection.jetstreamManager();
      const all = await Array.fromAsync(streams.list(), ({ config }) => config.name);
      return all.filter((name) => name.startsWith(stream));
    });
  await publishTo(place, [eventOf()]);
  await untilSent(place, 1);
  assert.deepEqual(await streamsHere(), []);
  const status = await look(service.url, "/debug/notification/status");
  assert.ok(!("undelivered_matchmaking" in status));
  await withNats(place.natsUrl, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.add({ name: stream, subjects: [subject] });
  });
  await publishMatchmaking(place, [matchmakingMessageOf(matchmakingEventOf())]);
  await publishTo(place, [eventOf({ userId: "bob" })]);
  await untilSent(place, 2);
  await service.stop();
  assert.deepEqual(await streamsHere(), [stream]);
  await using _enabled = await startWithMatchmaking(place); // also reads what was published before
  await untilSent(place, 3);
});
