// Whole notification services, from the stream to SENT.
import { startService } from "../servers/service_process.ts";
import { connectTo } from "../servers/nats_client.ts";
import { makeDatabase } from "../servers/databases.ts";
import { makeStream, publishEvents } from "./receive.ts";
import { type Bench, type Drain, type DrainOptions, itemsOfDrain, timed } from "./work.ts";
import { settingsOf, untilSent } from "./both.ts";
import { countRows, withClient } from "../servers/asking.ts";

export async function startConsumeDrain(
  bench: Bench,
  { name, replicas = 1 }: DrainOptions,
): Promise<Drain> {
  const events = itemsOfDrain(bench);
  const { servers } = bench;
  const database = await makeDatabase(servers.postgres, "notification", `bench_${name}`);
  const connection = await connectTo(servers.nats.url);
  const stream = await makeStream(connection, name);
  const settings = {
    ...settingsOf("notification", servers, database, name),
    NOTIFICATION_RETENTION_ENABLED: "false",
  };
  const services = await Promise.all(
    Array.from({ length: replicas }, () => startService("notification", settings)),
  );
  return {
    database,
    items: events,
    run: async () => {
      await withClient(
        database.ownerUrl,
        (owner) => owner.query("truncate notifications, processed_events"),
      );
      const sent = () => countRows(database.ownerUrl, "notifications where status = 'SENT'");
      const perSecond = await timed(events, async () => {
        await publishEvents(connection, stream.subjects[0], events);
        await untilSent(database, events);
      });
      if (await sent() !== events) throw new Error("More were sent than published");
      return perSecond;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(services.map((service) => service.stop()));
      await connection.close();
    },
  };
}
