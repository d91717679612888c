// deno task redeliver: for a notification database that was restored from a backup. JetStream has
// acks for the events that were received after the backup, so it would not deliver them again. A
// new durable consumer starts at the oldest message, and the service removes the duplicates.
import { readConfig } from "./config.ts";
import { ensureInbox } from "@kenri/shared/inbox/durables.ts";
import { runCommand, withJetStream } from "@kenri/shared/process/command.ts";
import { print } from "@kenri/shared/process/terminal.ts";

await runCommand(async () => {
  const config = readConfig();
  const { nats, stream, consumer } = config;
  await withJetStream(nats, async (jetStream) => {
    const manager = await jetStream.jetstreamManager();
    await manager.consumers.delete(stream.name, consumer.durable);
    await ensureInbox(manager, config); // NATS may not permit the service to create it
    const { messages } = (await manager.streams.info(stream.name)).state;
    print(`"${consumer.durable}" was created anew: ${messages} events are delivered again`);
  });
});
