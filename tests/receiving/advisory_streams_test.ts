// An advisory that no stream keeps is lost: the streams are there before anything is consumed.
import { readConfig } from "../../notification/config.ts";
import { consumeEvents } from "../../notification/consume_events.ts";
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
import { withNats } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

const bad = messageOf({ eventId: "no UUID" });

Deno.test("a message that was bad before the service ever ran is kept as well", async () => {
  await using place = await freshPlace();
  await makeStream(place);
  await publishRaw(place, Array.from({ length: 20 }, () => bad));
  await using _service = await startNotification(place);
  await until("all are", async () => (await countsOf(place)).notification_nats_dlq === 20);
});

Deno.test("nothing is consumed before there are streams that keep the advisories", async () => {
  await using place = await freshPlace();
  await makeStream(place);
  await publishRaw(place, [bad]);
  const { stream, consumer, advisories, predecessorWaitMs } = readConfig((name) =>
    settingsOf(place)[name]
  );
  const { log } = collectingLog();
  const database = openDatabase(place.serviceUrl, "consumer");
  const link = new NatsLink({ urls: place.natsUrl }, "consumer", log);
  const stop = new AbortController();
  const consuming = consumeEvents(
    { database, link, toDelivery: new Handover(), log, abandon: stop.signal },
    { stream, consumer, advisories, predecessorWaitMs },
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

function makeStream({ natsUrl, stream, subject }: Place): Promise<void> {
  return withNats(natsUrl, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.add({ name: stream, subjects: [subject] });
  });
}
