// deno task redeliver: for a notification database that was restored from a backup. JetStream has
// acks for the events that were received after the backup, so it would not deliver them again. A
// new durable consumer starts at the oldest message, and the service removes the duplicates.
import { readConfig } from "./config.ts";
import { ensureInbox } from "@kenri/shared/inbox/durables.ts";
import { runCommand, withJetStream } from "@kenri/shared/process/command.ts";
import { print } from "@kenri/shared/process/terminal.ts";
import { inboxesIn } from "./stream_settings.ts";

await runCommand(async () => {
  const config = readConfig();
  await withJetStream(config.nats, async (jetStream) => {
    const manager = await jetStream.jetstreamManager();
    for (const inbox of inboxesIn(config)) {
      const { stream, consumer } = inbox;
      const found = await manager.consumers.list(stream.name).next();
      if (found.some(({ name }) => name === consumer.durable)) {
        await manager.consumers.delete(stream.name, consumer.durable);
      }
      await ensureInbox(manager, inbox); // NATS may not permit the service to create it
      const { num_pending } = await manager.consumers.info(stream.name, consumer.durable);
      print(`"${consumer.durable}" was created anew: ${num_pending} events are delivered again`);
    }
  });
});
