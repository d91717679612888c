import { commandBatch } from "@kenri/shared/commands/command.ts";
import { addCommand } from "@kenri/shared/commands/route.ts";
import { createApp } from "@kenri/shared/http/app.ts";
import { inboxLoops } from "@kenri/shared/inbox/inbox.ts";
import type { OutboxRow } from "@kenri/shared/outbox/outbox_table.ts";
import { relayTable } from "@kenri/shared/outbox/table_source.ts";
import { runService } from "@kenri/shared/process/service.ts";
import { closeAll, openAccess, openNats, openTables } from "@kenri/shared/process/service_parts.ts";
import { Handover } from "@kenri/shared/queue/handover.ts";
import { Worker } from "@kenri/shared/queue/worker.ts";
import { readConfig } from "./config.ts";
import { firedInbox } from "./count_fired.ts";
import { createReminder, route } from "./create_reminder.ts";
import { eventTypes, firing, outbox, type ReminderRow } from "./fire_reminders.ts";
import { program } from "./program.ts";

await runService(program, readConfig, (config, { log, abandon }) => {
  const tables = openTables(program, config, log, () => Promise.resolve([]));
  const nats = openNats(program, config, log, { needsNats: true });
  const authenticator = openAccess(program, config, log);
  const checks = { ...tables.checks, ...nats.checks };
  const app = createApp({ title: "Reminders", checks, authenticator, log });
  const parts = { database: tables.database, link: nats.link, log, abandon };
  const [toFire, toRelay] = [new Handover<ReminderRow>(), new Handover<OutboxRow>()];
  addCommand(app, commandBatch(parts.database, createReminder, toFire), route);
  const fire = new Worker(firing(parts.database, config.firing), log, abandon);
  const { stream } = config.streams;
  const relay = { ...config.outbox, stream, types: eventTypes(stream.subjects[0]) };
  return {
    app,
    loops: [
      { name: "firing", run: (stop) => fire.run(toFire, stop) },
      { name: "relay", run: (stop) => relayTable({ ...parts, outbox, toRelay }, relay, stop) },
      ...inboxLoops(parts, firedInbox(parts.database, config.streams)),
    ],
    close: () => closeAll(nats, tables),
  };
});
