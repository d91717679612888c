// An advisory is lost if no stream stores it, so these streams exist before the service consumes
// events.
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
import { collectingLog } from "../support/relays.ts";
import { makeStream } from "../support/streams.ts";
import { until } from "../../tools/servers/wait.ts";

const bad = messageOf({ eventId: "no UUID" });

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
