// The small service as a process, with the permissions that follow from its settings.
import { argumentsOf, startOf } from "../../tools/services.ts";
import { command } from "../../tools/load/http_request.ts";
import { type Answer, attempt } from "../../tools/load/repeating_client.ts";
import { ask } from "../../tools/servers/asking.ts";
import {
  type ServiceProcess,
  type Settings,
  startProgram,
} from "../../tools/servers/service_process.ts";
import { root } from "../../tools/root.ts";
import { freshDatabaseOf } from "../support/databases.ts";
import { freshStreamNames, natsUrl } from "../support/streams.ts";
import { program } from "./program.ts";

export const folder = `${root}tests/reminders/`;
export const migrations = `${folder}migrations`;
const start = startOf(program, "tests/reminders");

type Read = (setting: string) => string | undefined;
export const runArguments = (read: Read): string[] => argumentsOf(start, read);

export interface Place extends AsyncDisposable {
  ownerUrl: string;
  settings: Settings;
}

/** A database and a stream of their own. */
export async function freshPlace(): Promise<Place> {
  const { ownerUrl, serviceUrl, drop } = await freshDatabaseOf("reminders", migrations);
  return {
    ownerUrl,
    settings: settingsOf({ ...freshStreamNames(), serviceUrl, natsUrl }),
    [Symbol.asyncDispose]: drop,
  };
}

export function settingsOf(
  place: { serviceUrl: string; natsUrl: string; stream: string; subject: string },
): Settings {
  return {
    REMINDERS_HTTP_PORT: "0",
    REMINDERS_DATABASE_URL: place.serviceUrl,
    REMINDERS_NATS_STREAM: place.stream,
    REMINDERS_NATS_SUBJECT: place.subject,
    REMINDERS_NATS_DURABLE: "counting",
    NATS_URL: place.natsUrl,
  };
}

/** `change` may replace the arguments with which the process is run. */
export function startReminders(
  settings: Settings,
  change: (args: string[]) => string[] = (args) => args,
): Promise<ServiceProcess> {
  return startProgram("reminders", change(runArguments((name) => settings[name])), settings);
}

export interface Reminder {
  key: string;
  user: string;
  text: string;
  at: number; // in milliseconds since 1970
}

export function toHttp({ key, user, text, at }: Reminder): ReturnType<typeof command> {
  const fields = { user_id: user, text, remind_at: new Date(at).toISOString() };
  return command("/v1/reminders", key, fields);
}

export async function remind(url: string, reminder: Reminder): Promise<Answer> {
  const { answer, problem } = await attempt(url, toHttp(reminder));
  if (!answer) throw new Error(problem);
  return answer;
}

/** Counts the rows by table and state. */
export const counts = `
  select 'reminders ' || status as what, count(*)::int from reminders group by status
  union all select 'reminder attempts', sum(attempt_count)::int from reminders
  union all select 'events ' || status, count(*)::int from outbox_events group by status
  union all select 'received', count(*)::int from processed_events
  union all select 'counted', sum(count)::int from fired_reminders`;

/** Those without rows are left out. */
export async function countsIn(ownerUrl: string): Promise<Record<string, number>> {
  const rows = await ask<{ what: string; count: number }>(ownerUrl, counts);
  return Object.fromEntries(
    rows.filter(({ count }) => count > 0).map(({ what, count }) => [what, count]),
  );
}
