// deno task redeliver: the notification database was restored from a backup. JetStream has the acks of
// what came in after it, and would not deliver that again. Without its durable consumer it does: the
// service makes a new one, which begins with the oldest message, and drops what it has already.
import { readConfig } from "../../notification/config.ts";
import { run, withJetStream } from "./run.ts";

await run(async (say) => {
  const { nats, stream, consumer } = readConfig();
  await withJetStream(nats, async (jetStream) => {
    const manager = await jetStream.jetstreamManager();
    await manager.consumers.delete(stream.name, consumer.durable);
    const { messages } = (await manager.streams.info(stream.name)).state;
    say(`"${consumer.durable}" begins anew: ${messages} events are delivered again`);
  });
});
