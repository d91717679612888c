import { inboxOf, inboxSettings } from "@kenri/shared/inbox/inbox_settings.ts";
import * as of from "@kenri/shared/process/service_settings.ts";
import { environment, parseSettings, prefixed } from "@kenri/shared/process/settings.ts";
import { workerSettings } from "@kenri/shared/queue/worker_settings.ts";
import { z } from "zod";
import { program } from "./program.ts";

export const schema = z.object({
  ...of.serviceSettings("reminders", program.port),
  ...of.databaseSettings("reminders"),
  ...of.natsSettings,
  ...prefixed("reminders.outbox", workerSettings),
  ...prefixed("reminders.firing", workerSettings),
  ...prefixed("reminders.nats", inboxSettings),
}).check(
  ...of.serviceChecks("reminders"),
  ...of.databaseChecks("reminders"),
  ...of.natsChecks,
  ...of.workerChecks("reminders.outbox"),
  ...of.workerChecks("reminders.firing"),
);

type Settings = z.output<typeof schema>;

const configOf = (settings: Settings) => ({
  ...of.serviceConfig("reminders", settings),
  ...of.databaseConfig("reminders", settings),
  ...of.natsConfig(settings),
  outbox: of.workerConfig("reminders.outbox", settings),
  firing: of.workerConfig("reminders.firing", settings),
  streams: inboxOf("reminders.nats", settings), // it receives its own events
});

export function readConfig(read = environment): ReturnType<typeof configOf> {
  return configOf(parseSettings(schema, read));
}
