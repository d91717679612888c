// The events of points: from a change over HTTP to the inbox, on a stream that they share with the
// events of entitlements.
import assert from "node:assert/strict";
import { readReceipt, type Receipt, subjectOfChecks } from "../../proto/notification/receipts.ts";
import { pointsKeyOf } from "../../proto/points/aggregate_key.ts";
import { durable, type Place, pointsDurable } from "../../tools/load/stage.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { until } from "../../tools/servers/wait.ts";
import { ofNotification, outcomes, sendBack, untilDead } from "../operators/dead_letters.ts";
import { grant } from "../support/api.ts";
import { ask } from "../support/entitlement.ts";
import { eventOf, eventsOf, publish } from "../support/events.ts";
import {
  allSent,
  consumerInfo,
  countsOf,
  freshPlace,
  notificationsOf,
  publishTo,
  settingsOf,
  startNotification,
  untilSent,
} from "../support/notification.ts";
import { whileTableIsLocked } from "../support/locks.ts";
import { grantPoints, spendPoints } from "../support/points.ts";
import { misleading, pointsEventOf, publishPoints } from "../support/points_events.ts";
import { assertInOrder, sendsIn } from "../support/sends.ts";
import { failingSends, look, operate, startStack } from "../support/stack.ts";
import { withNats } from "../support/streams.ts";

const advisoryLayer = `${ofNotification}?layer=advisory`;

Deno.test("every change of a balance becomes one notification, sent in order and shown in the inbox", async () => {
  await using stack = await startStack();
  const { entitlement, notification, place } = stack;
  await using second = await startService("notification", settingsOf(place));
  const users = ["ann", "bob", "a:b%"];
  const changes = Array.from({ length: 120 }, (_, i) => ({
    user_id: users[i % users.length],
    unit: i % 2 === 0 ? "points" : "coins",
    point_amount: i + 1,
  }));
  const answers = await Promise.all(
    changes.map((change, i) => (i % 4 === 3 ? spendPoints : grantPoints)(entitlement.url, change)),
  );
  await grant(entitlement.url, { user_id: "ann" });
  const accepted = answers.filter(({ status }) => status === 200).map(({ json }) => json);
  assert.ok(accepted.length > 60);
  await untilSent(place, accepted.length + 1);
  assert.deepEqual(await countsOf(place), allSent(accepted.length + 1));

  const rows = (await notificationsOf(place)).filter(({ type }) => type.startsWith("Points"));
  const changed = changes.map(({ user_id = "", unit }) => pointsKeyOf(user_id, unit));
  assert.deepEqual(
    rows.map(({ event_id, aggregate_key, version, type }) =>
      `${event_id} ${aggregate_key} ${version} ${type}`
    ).toSorted(),
    answers.flatMap(({ status, json }, i) => {
      if (status !== 200) return [];
      const { transaction_id, version, kind } = json.transaction;
      const type = kind === "GRANT" ? "PointsAdded" : "PointsTaken";
      return [`${transaction_id} ${changed[i]} ${version} ${type}`];
    }).toSorted(),
  );
  const sends = [notification, second].map(({ log }) => sendsIn(log));
  assertInOrder(sends, rows.map(({ aggregate_key: key, version }) => ({ key, version })));

  const { notifications } = await look(notification.url, "/debug/notification/inbox/ann?limit=200");
  const shown = notifications.filter(({ payload }: { payload: { unit?: string } }) => payload.unit);
  assert.equal(shown.length, rows.filter(({ user_id }) => user_id === "ann").length);
  const { payload, type } = shown[0];
  const [transaction] = accepted.map(({ transaction }) => transaction)
    .filter(({ transaction_id }) => transaction_id === payload.event_id);
  assert.deepEqual(
    [type, payload.point_amount, payload.balance, payload.version, payload.reservation_id],
    [
      payload.event_type,
      transaction.point_amount,
      transaction.balance_after,
      transaction.version,
      null,
    ],
  );
  const { events: [event] } = await look(
    notification.url,
    `/debug/notification/timeline?event_id=${payload.event_id}`,
  );
  assert.deepEqual(
    [event.type, event.stock_keeping_unit, event.version, event.status],
    [type, `points:${payload.unit}`, payload.version, "SENT"],
  );
});

Deno.test("points that can't be sent end as a dead letter, and keep their line when they are sent back", async () => {
  await using place = await freshPlace();
  const service = await startNotification(place, {
    ...failingSends,
    NOTIFICATION_DEBUG_ENABLED: "true",
  });
  const event = pointsEventOf({ user_id: "unlucky:ann", unit: "coins" });
  await publishPoints(place, [event]);
  const [dead] = await untilDead(service.url, ofNotification, 1);
  assert.deepEqual([dead?.layer, dead?.payload], ["delivery", event]);
  await service.stop();
  await ask(place.ownerUrl, "delete from notifications"); // as retention does
  await using again = await startNotification(place, { NOTIFICATION_DEBUG_ENABLED: "true" });
  await operate(again.url, sendBack, { layer: "delivery", ids: [dead?.id] });
  await untilSent(place, 1);
  const [{ aggregate_key, type, version } = {}] = await notificationsOf(place);
  assert.deepEqual([aggregate_key, type, version], [
    "points:unlucky%3Aann:coins",
    "PointsAdded",
    1,
  ]);
});

Deno.test("a message that is no event of points is terminated, kept, and counted in the status", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place, { NOTIFICATION_DEBUG_ENABLED: "true" });
  const status = () => look(service.url, "/debug/notification/status");
  await publish(place.natsUrl, `${place.stream}.points`, [{ body: new Uint8Array([255]) }]);
  const [dead] = await untilDead(service.url, advisoryLayer, 1);
  assert.equal(dead?.event_id, null);
  const kept = await ask(place.ownerUrl, "select kind, consumer from notification_nats_dlq");
  assert.deepEqual(kept, [{ kind: "MSG_TERMINATED", consumer: pointsDurable }]);
  const { errors, unacknowledged_points } = await status();
  assert.deepEqual([errors.length, unacknowledged_points], [1, 0]);
});

Deno.test("an event of points that JetStream gave up on is received from its copy", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place, {
    NOTIFICATION_DEBUG_ENABLED: "true",
    NOTIFICATION_NATS_MAX_DELIVER: "1",
    NOTIFICATION_NATS_ACK_WAIT: "1s",
  });
  await ask(
    place.ownerUrl,
    "alter table notifications add constraint no_points check (type not like 'Points%')",
  );
  const event = pointsEventOf(misleading);
  await publishPoints(place, [event]);
  const [dead] = await untilDead(service.url, advisoryLayer, 1);
  assert.deepEqual([dead?.event_id, dead?.payload], [event.event_id, event]);
  await ask(place.ownerUrl, "alter table notifications drop constraint no_points");
  const answer = await operate(service.url, sendBack, { layer: "advisory", ids: [dead?.id] });
  assert.deepEqual(outcomes(answer), ["SENT_BACK"]);
  await untilSent(place, 1);
  assert.equal((await notificationsOf(place))[0]?.type, "PointsAdded");
});

Deno.test("the stream and the consumer of a release without points get what points need, and lose nothing", async () => {
  await using place = await freshPlace();
  const events = eventsOf({ users: 20, versions: 2 });
  await asBefore(place);
  await publishTo(place, events);
  assert.equal((await pullAsBefore(place, 7)).length, 7); // by a replica that dies
  await using _service = await startNotification(place, { NOTIFICATION_NATS_ACK_WAIT: "1s" });
  await publishPoints(place, [pointsEventOf()]);
  await untilSent(place, events.length + 1);
  assert.deepEqual(await countsOf(place), allSent(events.length + 1));
  assert.equal((await consumerInfo(place)).config.filter_subject, place.subject);
});

Deno.test("a replica of a release without points is never given an event of points", async () => {
  await using place = await freshPlace();
  await asBefore(place);
  const service = await startNotification(place);
  await service.stop();
  await publishPoints(place, [pointsEventOf(misleading)]);
  await publishTo(place, eventsOf({ users: 3, versions: 1 }));
  assert.deepEqual(await pullAsBefore(place, 10), Array(3).fill(place.subject));
});

Deno.test("an event of points that arrives over the first consumer is read as one, and stored once", async () => {
  await using place = await freshPlace();
  await using _service = await startNotification(place);
  await withNats(place.natsUrl, async (connection) => {
    const { consumers } = await connection.jetstreamManager();
    const { config } = await consumers.info(place.stream, durable);
    delete config.filter_subject;
    await consumers.update(place.stream, durable, config); // as a replica of that release does
  });
  await publishPoints(place, [pointsEventOf(misleading)]);
  await untilSent(place, 1);
  for (const name of [durable, pointsDurable]) {
    await until("both have it", async () => {
      const { delivered, num_ack_pending } = await consumerInfo(place, name);
      return delivered.stream_seq === 1 && num_ack_pending === 0;
    });
  }
  assert.deepEqual(await countsOf(place), allSent(1));
  assert.equal((await notificationsOf(place))[0]?.type, "PointsAdded");
});

Deno.test("the receipt is about events of points, too, and neither consumer hides the other's backlog", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place);
  const [event, unknown] = [pointsEventOf(), crypto.randomUUID()];
  const [sequence] = await publishPoints(place, [event]);
  await untilSent(place, 1);
  const asked = [event.event_id, unknown];
  const receipt = await receiptOf(place, asked);
  assert.deepEqual(
    [receipt.missing, receipt.undelivered, receipt.unsettled, receipt.delivered_up_to],
    [[unknown], 0, 0, sequence],
  );
  await publishTo(place, eventsOf({ users: 2, versions: 1 }));
  await untilSent(place, 3);
  await whileTableIsLocked(place.ownerUrl, "notifications", async () => {
    await publishPoints(place, [2, 3].map((version) => pointsEventOf({ version })));
    await publishTo(place, [eventOf({ userId: "bob" })]);
    for (const [name, count] of [[durable, 1], [pointsDurable, 2]] as const) {
      const held = async () => (await consumerInfo(place, name)).num_ack_pending === count;
      await until("they are held", held);
    }
    const { unsettled, settled_up_to } = await receiptOf(place, asked);
    assert.deepEqual([unsettled, settled_up_to], [3, sequence]);
  });
  await untilSent(place, 6);
  assert.equal(await service.stop(), 0);
});

/** The stream and the consumer as the release before makes them. */
function asBefore({ natsUrl, stream, subject }: Place): Promise<void> {
  return withNats(natsUrl, async (connection) => {
    const { streams, consumers } = await connection.jetstreamManager();
    await streams.add({ name: stream, subjects: [subject] });
    await consumers.add(stream, {
      ...{ durable_name: durable, max_deliver: 10, ack_wait: 1_000_000_000 },
      ack_policy: "explicit" as never,
      max_ack_pending: 20_000,
    });
  });
}

/** The subjects of the messages that the shared consumer delivers, which stay without an ack. */
function pullAsBefore({ natsUrl, stream }: Place, batch: number): Promise<string[]> {
  return withNats(natsUrl, async (connection) => {
    const messages = connection.jetstream().fetch(stream, durable, { batch, expires: 1_000 });
    return await Array.fromAsync(messages, ({ subject }) => subject);
  });
}

function receiptOf(place: Place, event_ids: string[]): Promise<Receipt> {
  return withNats(place.natsUrl, async (connection) => {
    const [subject, question] = [subjectOfChecks(place.subject), JSON.stringify({ event_ids })];
    return readReceipt((await connection.request(subject, question, { timeout: 5_000 })).data);
  });
}
