// deno task redeliver: the notification database was restored from a backup. JetStream has the acks of
// what came in after it, and would not deliver that again. A new durable consumer does: it begins with
// the oldest message, and the service drops what it has already.
import { readConfig } from "@kenri/notification/config.ts";
import { ensureEvents } from "@kenri/notification/durables.ts";
import { run, withJetStream } from "./run.ts";

await run(async (say) => {
  const config = readConfig();
  const { nats, stream, consumer } = config;
  await withJetStream(nats, async (jetStream) => {
    const manager = await jetStream.jetstreamManager();
    await manager.consumers.delete(stream.name, consumer.durable);
    await ensureEvents(manager, config); // the service may not be permitted to
    const { messages } = (await manager.streams.info(stream.name)).state;
    say(`"${consumer.durable}" begins anew: ${messages} events are delivered again`);
  });
});
