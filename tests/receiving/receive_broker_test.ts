// The broker may be away, come back with less than it had, or be changed by somebody else: the
// service finds its way back to it by itself, and what is stored once stays stored once.
import assert from "node:assert/strict";
import { AckPolicy, type ConsumerConfig, DeliverPolicy, RetentionPolicy } from "nats";
import { startNats } from "../../tools/servers/nats.ts";
import { call } from "../support/api.ts";
import { eventsOf, messageOf } from "../support/events.ts";
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
import { type LogLine, startService } from "../../tools/servers/service_process.ts";
import { withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

Deno.test("a broker that is killed and started again costs nothing and doubles nothing", async () => {
  await using nats = await startNats();
  await using place = await freshPlace({ natsUrl: nats.url });
  await using service = await startNotification(place, { NOTIFICATION_NATS_ACK_WAIT: "1s" });
  const events = eventsOf({ users: 100, versions: 12 });
  for (const part of [events.slice(0, 500), events.slice(500, 900), events.slice(900)]) {
    await publishTo(place, part);
    const connected = count(service.log, /^Connected to NATS/);
    await nats.kill(); // in the middle of the work
    await nats.start();
    await until("it came back", () => count(service.log, /^Connected to NATS/) > connected);
  }
  await untilSent(place, events.length);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(events.length));
  assert.equal(await service.stop(), 0);
});

Deno.test("after the broker was wiped, old and new events together are one row each", async () => {
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

Deno.test("a stream, a durable and the streams of advisories that are deleted are made again", async () => {
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
  assert.ok(count(service.log, /^Events can't be consumed/) <= 2);
  assert.equal(await service.stop(), 0);
});

Deno.test("it starts without its servers, says so once, and works as soon as they are there", async () => {
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
  await until("it notices", () => count(service.log, /^The database is away/) === 1);
  await database.server.start();
  await untilSent(place, events.length);
  await untilAllAcked(place);
  assert.deepEqual(await countsOf(place), allSent(events.length));
  await until("it is ready", async () => (await call(`${service.url}/readyz`)).status === 200);
  for (
    const problem of [/^NATS can't be reached/, /^delivery can't use/, /^The database is away/]
  ) {
    assert.equal(count(service.log, problem), 1, `${problem}`);
  }
});

const foreign: [string, Partial<ConsumerConfig>][] = [
  ["sees another subject only", { filter_subject: "elsewhere" }],
  ["gets headers only", { headers_only: true }],
  ["may ask for few messages only", { max_batch: 1, max_bytes: 100, max_expires: 1_000_000_000 }],
  ["waits by other rules", { backoff: [1_000_000, 2_000_000], max_deliver: 5 }],
  ["has few in flight", { max_ack_pending: 1, ack_wait: 1_000_000 }],
];

for (const [what, config] of foreign) {
  Deno.test(`a durable that somebody else made so that it ${what} is brought to ours`, async () => {
    await using place = await freshPlace();
    await makeDurable(place, config);
    await using _service = await startNotification(place);
    await publishTo(place, eventsOf({ users: 10, versions: 3 }));
    await untilSent(place, 30);
    await untilAllAcked(place);
    const { config: found } = await consumerInfo(place);
    for (const name of ["filter_subject", "headers_only", "max_batch", "max_bytes", "backoff"]) {
      assert.equal(found[name as keyof ConsumerConfig], undefined);
    }
    assert.deepEqual([found.max_deliver, found.ack_wait], [10, 10_000_000_000]);
  });
}

const unchangeable: [string, Partial<ConsumerConfig>][] = [
  ["that is pushed to", { deliver_subject: "elsewhere" }],
  ["without acks", { ack_policy: AckPolicy.None }],
  ["of new messages only", { deliver_policy: DeliverPolicy.New }],
];

for (const [what, config] of unchangeable) {
  Deno.test(`a durable ${what} can't be changed, which ends the start with a clear error`, async () => {
    await using place = await freshPlace();
    await makeDurable(place, config);
    await using service = await startService("notification", settingsOf(place));
    assert.equal(await service.exited, 1);
    assert.equal(count(service.log, /Consumer "notifications" can't get the wanted settings: /), 1);
  });
}

Deno.test("so does a stream that drops what was acked", async () => {
  await using place = await freshPlace();
  await withNats(place.natsUrl, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    const retention = RetentionPolicy.Workqueue;
    await streams.add({ name: place.stream, subjects: [place.subject], retention });
  });
  await using service = await startService("notification", settingsOf(place));
  assert.equal(await service.exited, 1);
  assert.ok(count(service.log, /Stream .* can't get the wanted settings: /) > 0);
});

function makeDurable(place: Place, config: Partial<ConsumerConfig>): Promise<void> {
  return withNats(place.natsUrl, async (connection) => {
    const { streams, consumers } = await connection.jetstreamManager();
    const elsewhere = `${place.stream}.elsewhere`;
    await streams.add({ name: place.stream, subjects: [place.subject, elsewhere] });
    const common = { durable_name: durable, ack_policy: AckPolicy.Explicit };
    const filter = config.filter_subject && { filter_subject: elsewhere };
    await consumers.add(place.stream, { ...common, ...config, ...filter });
  });
}

/** Made again, by the service. */
function untilConsuming(place: Place): Promise<void> {
  return until("it consumes again", () => consumerInfo(place).then(() => true, () => false));
}

function count(log: LogLine[], message: RegExp): number {
  return log.filter((line) => message.test(line.message)).length;
}
