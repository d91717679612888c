// The broker may be unavailable, come back with less data, or be changed by somebody else. The
// service recovers by itself and still stores each event once.
import assert from "node:assert/strict";
import { AckPolicy, type ConsumerConfig, DeliverPolicy, RetentionPolicy } from "nats";
import { startNats } from "../../tools/servers/nats.ts";
import { call } from "../support/api.ts";
import { eventsOf, messageOf } from "../support/events.ts";
import { countLogged } from "../support/logs.ts";
import {
  advisoryStream,
  allSent,
  consumerInfo,
  countsOf,
  freshPlace,
  publishRaw,
  publishTo,
  settingsOf,
  startNotification,
  untilAllAcked,
  untilSent,
} from "../support/notification.ts";
import { durable, type Place } from "../../tools/load/stage.ts";
import { ownDatabase } from "../support/databases.ts";
import { startService } from "../../tools/servers/service_process.ts";
import { makeStream, withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("killing and restarting the broker neither loses nor duplicates a notification", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using service = await startNotification(place, { NOTIFICATION_NATS_ACK_WAIT: "1s" });
  const events = eventsOf({ users: 100, versions: 12 });
  for (const part of [events.slice(0, 500), events.slice(500, 900), events.slice(900)]) {
    await publishTo(place, part);
    const connected = countLogged(service.log, /^Connected to NATS/);
    await nats.kill(); // in the middle of the work
    await nats.start();
    await until("it came back", () => countLogged(service.log, /^Connected to NATS/) > connected);
  }
  await untilSent(place, events.length);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(events.length));
  assert.equal(await service.stop(), 0);
});

Deno.test("after the broker was wiped, each event, old or new, is stored once", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using _service = await startNotification(place, { NOTIFICATION_NATS_ACK_WAIT: "1s" });
  const events = eventsOf({ users: 50, versions: 6 });
  await publishTo(place, events.slice(0, 200));
  await untilSent(place, 200);
  await nats.stop();
  await nats.wipe();
  await nats.start();
  await untilConsuming(place);
  await publishTo(place, events);
  await untilSent(place, events.length);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(events.length));
});

Deno.test("a deleted stream, durable consumer or stream of advisories is created again", async () => {
  await using place = await freshPlace();
  await using service = await startNotification(place);
  const events = eventsOf({ users: 50, versions: 8 });
  await publishTo(place, events.slice(0, 100));

  await withNats(place.natsUrl, async (connection) => {
    const manager = await connection.jetstreamManager();
    await manager.consumers.delete(place.stream, durable);
  });
  await publishTo(place, events.slice(100, 200));
  await untilSent(place, 200);

  await withNats(place.natsUrl, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.delete(place.stream);
    await streams.delete(advisoryStream(place, "MSG_TERMINATED"));
    await streams.delete(advisoryStream(place, "MAX_DELIVERIES"));
  });
  await untilConsuming(place);
  await publishTo(place, events.slice(200));
  await untilSent(place, events.length);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(events.length));

  await publishRaw(place, [messageOf({ eventId: "no UUID" })]);
  await until("it is captured", async () => (await countsOf(place)).notification_nats_dlq === 1);
  const inboxes = 2;
  assert.ok(countLogged(service.log, /^Events can't be consumed/) <= 2 * inboxes);
  assert.equal(await service.stop(), 0);
});

Deno.test("the service starts without its servers, logs it once, and works as soon as they are available", async () => {
  await using nats = await startNats();
  await using database = await ownDatabase("notification");
  await using names = await freshPlace();
  const place: Place = { ...names, ...database, natsUrl: nats.url };
  await nats.stop();
  await database.server.stop();
  const settings = { ...settingsOf(place), NOTIFICATION_NATS_ACK_WAIT: "1s" };
  await using service = await startService("notification", settings);
  await until("it says what is missing", async () => {
    const { status, text } = await call(`${service.url}/readyz`);
    return status === 503 && /database/.test(text) && /NATS/.test(text);
  });
  assert.equal((await call(`${service.url}/livez`)).status, 200);
  await nats.start();
  await untilConsuming(place);
  const events = eventsOf({ users: 20, versions: 5 });
  await publishTo(place, events);
  await until("it notices", () => countLogged(service.log, /^Database unavailable/) === 1);
  await database.server.start();
  await untilSent(place, events.length);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(events.length));
  await until("it is ready", async () => (await call(`${service.url}/readyz`)).status === 200);
  for (
    const problem of [/^NATS can't be reached/, /^delivery can't use/, /^Database unavailable/]
  ) {
    assert.equal(countLogged(service.log, problem), 1, `${problem}`);
  }
});

const foreign: [string, Partial<ConsumerConfig>][] = [
  ["is limited to another subject", { filter_subject: "elsewhere" }],
  ["delivers only headers", { headers_only: true }],
  ["allows only small pulls", { max_batch: 1, max_bytes: 100, max_expires: 1_000_000_000 }],
  ["has another backoff", { backoff: [1_000_000, 2_000_000], max_deliver: 5 }],
  ["allows few messages without an ack", { max_ack_pending: 1, ack_wait: 1_000_000 }],
];

for (const [what, config] of foreign) {
  Deno.test(`a durable consumer that ${what} gets the wanted settings`, async () => {
    await using place = await freshPlace();
    await makeDurable(place, config);
    await using _service = await startNotification(place);
    await publishTo(place, eventsOf({ users: 10, versions: 3 }));
    await untilSent(place, 30);
    await untilAllAcked(place);
    const { config: found } = await consumerInfo(place);
    assert.equal(found.filter_subject, place.subject);
    for (const name of ["headers_only", "max_batch", "max_bytes", "backoff"]) {
      assert.equal(found[name as keyof ConsumerConfig], undefined);
    }
    assert.deepEqual([found.max_deliver, found.ack_wait], [10, 10_000_000_000]);
  });
}

const unchangeable: [string, Partial<ConsumerConfig>][] = [
  ["with push delivery", { deliver_subject: "elsewhere" }],
  ["without acks", { ack_policy: AckPolicy.None }],
  ["of new messages only", { deliver_policy: DeliverPolicy.New }],
];

for (const [what, config] of unchangeable) {
  Deno.test(`a durable consumer ${what} can't be changed, so the start fails with a clear error`, async () => {
    await using place = await freshPlace();
    await makeDurable(place, config);
    await using service = await startService("notification", settingsOf(place));
    assert.equal(await service.exited, 1);
    assert.equal(
      countLogged(service.log, /Consumer "notifications" can't get the wanted settings: /),
      1,
    );
  });
}

Deno.test("a stream that deletes acked messages can't be changed, so the start fails with a clear error", async () => {
  await using place = await freshPlace();
  await makeStream(place.natsUrl, place, { retention: RetentionPolicy.Workqueue });
  await using service = await startService("notification", settingsOf(place));
  assert.equal(await service.exited, 1);
  assert.ok(countLogged(service.log, /Stream .* can't get the wanted settings: /) > 0);
});

async function makeDurable(place: Place, config: Partial<ConsumerConfig>): Promise<void> {
  const elsewhere = `${place.stream}.elsewhere`;
  await makeStream(place.natsUrl, place, { subjects: [place.subject, elsewhere] });
  await withNats(place.natsUrl, async (connection) => {
    const { consumers } = await connection.jetstreamManager();
    const common = { durable_name: durable, ack_policy: AckPolicy.Explicit };
    const filter = config.filter_subject && { filter_subject: elsewhere };
    await consumers.add(place.stream, { ...common, ...config, ...filter });
  });
}

/** The service creates the consumer again. */
function untilConsuming(place: Place): Promise<void> {
  return until("it consumes again", () => consumerInfo(place).then(() => true, () => false));
}
