import { inboxOf, inboxSettings } from "@kenri/shared/inbox/inbox_settings.ts";
import { database, nats, service, worker } from "@kenri/shared/process/service_settings.ts";
import { environment, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { z } from "zod";
import { program } from "./program.ts";

export const schema = z.object({
  ...service.settings("reminders", program.port),
  ...database.settings("reminders"),
  ...nats.settings(),
  ...worker.settings("reminders.outbox"),
  ...worker.settings("reminders.firing"),
  ...prefixed("reminders.nats", inboxSettings),
}).check(
  ...service.checks("reminders"),
  ...database.checks("reminders"),
  ...nats.checks(),
  ...worker.checks("reminders.outbox"),
  ...worker.checks("reminders.firing"),
);

const configOf = (settings: z.output<typeof schema>) => ({
  ...service.config("reminders", settings),
  ...database.config("reminders", settings),
  ...nats.config(settings),
  outbox: worker.config("reminders.outbox", settings),
  firing: worker.config("reminders.firing", settings),
  streams: inboxOf("reminders.nats", settings), // it receives its own events
});

export function readConfig(read = environment): ReturnType<typeof configOf> {
  return configOf(parseSettings(schema, read));
}
