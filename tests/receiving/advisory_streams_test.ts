// An advisory is lost if no stream stores it, so these streams exist before the service consumes
// events.
import assert from "node:assert/strict";
import { readConfig } from "../../notification/config.ts";
import { eventInboxes } from "../../notification/consume_events.ts";
import { captureAdvisories } from "../../shared/inbox/capture_advisories.ts";
import { receive } from "../../shared/inbox/inbox.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { Handover } from "../../shared/queue/handover.ts";
import { messageOf } from "../support/events.ts";
import {
  advisoriesSent,
  countsOf,
  freshPlace,
  publishRaw,
  settingsOf,
  startNotification,
} from "../support/notification.ts";
import type { Place } from "../../tools/load/stage.ts";
import { collectingLog } from "../support/relays.ts";
import { deleteStream, makeStream } from "../support/streams.ts";
import { ask } from "../support/entitlement.ts";
import { until } from "../../tools/servers/wait.ts";

const bad = messageOf({ eventId: "no UUID" });
const quick: Record<string, string> = { NOTIFICATION_NATS_ACK_WAIT: "1s" };

Deno.test("an unreadable message that was published before the service first ran is captured", async () => {
  await using place = await freshPlace();
  await makeStream(place.natsUrl, place);
  await publishRaw(place, Array.from({ length: 20 }, () => bad));
  await using _service = await startNotification(place);
  await until("all are", async () => (await countsOf(place)).notification_nats_dlq === 20);
});

Deno.test("no event is consumed before the streams of advisories exist", async () => {
  await using place = await freshPlace();
  await makeStream(place.natsUrl, place);
  await publishRaw(place, [bad]);
  const config = readConfig((name) => settingsOf(place)[name]);
  const { log } = collectingLog();
  const database = openDatabase(place.serviceUrl, "consumer");
  const link = new NatsLink({ urls: place.natsUrl }, "consumer", log);
  const stop = new AbortController();
  const consuming = receive(
    { link, log, abandon: stop.signal },
    eventInboxes({ database, toDelivery: new Handover() }, config)[0],
    stop.signal,
  );
  await until(
    "it is kept",
    () => advisoriesSent(place).then(({ MSG_TERMINATED }) => MSG_TERMINATED === 1, () => false),
  );
  stop.abort();
  await consuming;
  await link.close();
  await database.end();
});

Deno.test("an advisory about a stream that is gone is stored without a copy", async () => {
  await using place = await freshPlace();
  const service = await startNotification(place, quick);
  await ask(place.ownerUrl, "alter table notification_nats_dlq rename column kind to held");
  await publishRaw(place, [bad]);
  await until("it is kept", async () => (await advisoriesSent(place)).MSG_TERMINATED === 1);
  await service.stop();
  await ask(place.ownerUrl, "alter table notification_nats_dlq rename column held to kind");
  await deleteStream(place.natsUrl, place.stream);

  await using alone = captureOnly(place);
  await until("it is captured", async () => (await countsOf(place)).notification_nats_dlq === 1);
  await alone.stop();
  assert.deepEqual(
    await ask(place.ownerUrl, "select stream_seq::int, message_body from notification_nats_dlq"),
    [{ stream_seq: 1, message_body: null }],
  );
});

/** The capture of terminated messages without the consumer, which would make the stream again. */
function captureOnly(place: Place): AsyncDisposable & { stop(): Promise<void> } {
  const config = readConfig((name) => ({ ...settingsOf(place), ...quick })[name]);
  const [, terminated] = config.advisories;
  assert.ok(terminated);
  const { log } = collectingLog();
  const database = openDatabase(place.serviceUrl, "capture");
  const link = new NatsLink({ urls: place.natsUrl }, "capture", log);
  const stopping = new AbortController();
  const capturing = captureAdvisories(
    { name: "capture", database, table: "notification_nats_dlq", link, log },
    terminated,
    stopping.signal,
  );
  const stop = async () => {
    if (stopping.signal.aborted) return;
    stopping.abort();
    await capturing;
    await link.close();
    await database.end();
  };
  return { stop, [Symbol.asyncDispose]: stop };
}
