import { z } from "@hono/zod-openapi";
import type { Command } from "@kenri/shared/commands/command.ts";
import type { CommandRoute, Sender } from "@kenri/shared/commands/route.ts";
import { storedKeyOf } from "@kenri/shared/commands/stored_answers.ts";
import { fieldSchema } from "@kenri/shared/http/fields.ts";
import { query, type Transaction } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import { uuidv7 } from "@kenri/shared/process/uuid.ts";
import type { ReminderRow } from "./fire_reminders.ts";

const schema = z.object({
  user_id: fieldSchema(),
  text: fieldSchema(),
  remind_at: z.iso.datetime(),
}).openapi("Reminder");

type Fields = z.infer<typeof schema>;
type Request = Fields & Sender;
type Reminder = Fields & { kind: "reminder"; reminder_id: string };

export const createReminder: Command<Request, string, Reminder, ReminderRow> = {
  name: "reminders",
  answerTtlMs: 24 * 60 * 60_000,
  identityOf: ({ user_id, text, remind_at, ...sender }) => ({
    key: storedKeyOf(sender),
    request: ["create reminder", user_id, text, remind_at],
  }),
  locksOf: () => [], // no two reminders have anything in common
  find: (_, requests) => Promise.resolve(requests.map(() => uuidv7())),
  decide: ({ user_id, text, remind_at }, reminder_id) => ({
    answer: { status: 200, body: JSON.stringify({ reminder_id }), outcome: "applied" },
    effects: [{ kind: "reminder", reminder_id, user_id, text, remind_at }],
  }),
  apply: { reminder: storeReminders },
};

// They are PENDING, so the worker is woken: it finds out when the next one is due.
async function storeReminders(tx: Transaction, reminders: Reminder[]): Promise<ReminderRow[]> {
  await query(
    tx,
    sql`insert into reminders (reminder_id, user_id, text, remind_at, next_retry_at)
select reminder_id, user_id, text, remind_at, case when remind_at <= now() then now() end
from json_populate_recordset(null::reminders, ${JSON.stringify(reminders)})`,
  );
  return [];
}

export const route: CommandRoute<Fields, Request> = {
  route: {
    method: "post",
    path: "/v1/reminders",
    scope: "entitlements:write",
    summary: "Remind a user of something at a time",
    responses: { 200: { description: "The id of the reminder" } },
  },
  key: { advice: "any text that names this reminder", example: "call-ann" },
  body: { schema, example: { user_id: "ann", text: "call", remind_at: "2026-01-02T03:04:05Z" } },
  toInput: (fields, sender) => ({ ...fields, ...sender }),
  count: () => {},
};
