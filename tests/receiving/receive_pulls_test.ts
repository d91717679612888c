// One pull follows another without a gap, and the messages of open pulls are limited, even if the
// server never announces the end of a pull.
import assert from "node:assert/strict";
import { AckPolicy } from "nats";
import { connectTo } from "../../tools/servers/nats_client.ts";
import { readConfig } from "../../notification/config.ts";
import { eventInboxes } from "../../notification/consume_events.ts";
import { Intake } from "../../shared/inbox/intake.ts";
import { Handover } from "../../shared/queue/handover.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { ask } from "../support/entitlement.ts";
import { eventOf, eventsOf } from "../support/events.ts";
import { forgetful, startLink } from "./links.ts";
import { whileTableIsLocked } from "../support/locks.ts";
import {
  consumerInfo,
  freshPlace,
  publishTo,
  settingsOf,
  startNotification,
  untilAllAcked,
  untilSent,
} from "../support/notification.ts";
import { durable, type Place } from "../../tools/load/stage.ts";
import { collectingLog } from "../support/relays.ts";
import { makeStream, natsUrl } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

const servers = {
  "": {},
  " if the server never announces the end of a pull": { rewrite: forgetful },
};

for (const [where, options] of Object.entries(servers)) {
  Deno.test(`no event waits for the end of a pull${where}`, async () => {
    await using link = startLink(natsUrl, options);
    await using place = await freshPlace();
    await using _service = await startNotification({ ...place, natsUrl: link.url });
    const events = 60;
    for (let i = 0; i < events; i++) {
      await publishTo(place, [eventOf({ userId: `user-${i}`, occurredAt: new Date() })]);
      await new Promise((next) => setTimeout(next, 100));
    }
    await untilSent(place, events);
    const [late] = await ask<{ ms: number }>(
      place.ownerUrl,
      `select max(extract(epoch from created_at - occurred_at) * 1000)::int as ms
       from notifications`,
    );
    // Usually a few milliseconds. Without the question about the consumer it was 6 seconds.
    assert.ok(late && late.ms < 2_500, `${late?.ms} ms`);
  });

  Deno.test(`replicas that stop lose no message and use up no delivery${where}`, async () => {
    await using link = startLink(natsUrl, { ...options, delayMs: 100 }); // so that many messages are in transit
    await using place = await freshPlace();
    const linked = { ...place, natsUrl: link.url };
    const events = eventsOf({ users: 40, versions: 15 });
    await using stayed = await startNotification(place);
    let published = 0;
    const publishing = (async () => {
      while (published < events.length) {
        await publishTo(place, events.slice(published, published += 5));
        await new Promise((next) => setTimeout(next, 20));
      }
    })();
    const seconds: number[] = [];
    while (published < events.length) {
      await using replica = await startNotification(linked);
      await until("it has pulled", async () => await waitingPulls(place) > 2);
      const from = performance.now();
      assert.equal(await replica.stop(), 0);
      seconds.push((performance.now() - from) / 1_000);
    }
    await publishing;
    await untilSent(place, events.length);
    await untilAllAcked(place);
    const { delivered, num_redelivered } = await consumerInfo(place);
    assert.deepEqual([delivered.consumer_seq, num_redelivered], [events.length, 0]);
    assert.ok(Math.max(...seconds) < 8, `a stop took ${Math.max(...seconds)} s`);
    assert.equal(await stayed.stop(), 0);
  });
}

Deno.test("an emptied intake has no open pull and receives nothing more", async () => {
  await using place = await freshPlace();
  const database = openDatabase(place.serviceUrl, "intake");
  const [stopping, abandon] = [new AbortController(), new AbortController()];
  const { log } = collectingLog();
  const config = readConfig((name) => settingsOf(place)[name]);
  const intake = new Intake(
    { log, abandon: abandon.signal },
    eventInboxes({ database, toDelivery: new Handover() }, config)[0],
  );
  const connection = await connectTo(natsUrl, { reconnect: false });
  const { consumers } = await connection.jetstreamManager();
  await makeStream(natsUrl, place);
  await consumers.add(place.stream, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
  });
  await publishTo(place, [eventOf()]);
  const pulled = { connection, service: "notification", stream: place.stream, name: durable };
  const filling = (async () => {
    while (!stopping.signal.aborted) await intake.fill(pulled, stopping.signal);
  })();
  await until("two pulls are open", async () => await waitingPulls(place) >= 2);
  stopping.abort();
  await filling;
  await intake.empty();
  await publishTo(place, eventsOf({ users: 10, versions: 1 }));
  await new Promise((over) => setTimeout(over, 300)); // time in which an open pull would receive them
  const { delivered, num_pending, num_ack_pending } = await consumerInfo(place);
  assert.deepEqual([delivered.consumer_seq, num_pending, num_ack_pending], [1, 10, 0]);
  await connection.close();
  await database.end();
});

Deno.test("while nothing can be stored, the messages in hand stay within their limit", async () => {
  await using place = await freshPlace();
  await using _service = await startNotification(place);
  await publishTo(place, [eventOf({ userId: "first" })]);
  await untilSent(place, 1); // so that the service knows that the database is available
  const events = eventsOf({ users: 4_000, versions: 1 });
  let largest = 0;
  const look = async () => largest = Math.max(largest, (await consumerInfo(place)).num_ack_pending);
  await whileTableIsLocked(place.ownerUrl, "processed_events", async (release) => {
    await publishTo(place, events.slice(0, 450));
    await until("they are in hand", async () => await look() === 450);
    await new Promise((over) => setTimeout(over, 1_500)); // time to open all the pulls that it may
    for (let i = 450; i < events.length; i += 500) {
      await publishTo(place, events.slice(i, i + 500));
      await look();
    }
    await until("two pulls are in hand", async () => await look() > 500);
    await new Promise((over) => setTimeout(over, 500));
    await look();
    await release();
  });
  assert.ok(largest <= 1_000, `${largest} messages were in hand`);
  await untilSent(place, events.length + 1, 120_000);
});

async function waitingPulls(place: Place): Promise<number> {
  return (await consumerInfo(place)).num_waiting;
}
