import type { ErasureAnswer, ErasureBody } from "@kenri/shared/operators/erasure.ts";
import {
  changeFields,
  changeHelp,
  changeOptions,
  type Command,
  UsageError,
} from "@kenri/shared/ops/command.ts";
import { changes } from "@kenri/shared/ops/service_api.ts";
import { count, list } from "@kenri/shared/ops/text.ts";
import type { Service } from "./service.ts";

const route = changes<ErasureBody, ErasureAnswer>("erase-user");

export const eraseUser: Command<Service[]> = {
  usage: "erase-user USER",
  words: 1,
  summary: "Replace a user with a pseudonym in every service, permanently",
  options: changeOptions,
  help: `${changeHelp()}

Removes the user id and what else identifies the user from the tables of each service. The number of
rows and the audit chains stay as they are. The record of the operation does not name the user.
Nothing is erased while an event of the user is on its way. Afterwards the same id is a new user. The
command may be repeated. The stream, logs and backups delete their copies with time: docs/privacy.md.
Exit code 1 if an event was on its way.`,
  async run(services, call) {
    const [user_id] = call.positionals;
    if (user_id === undefined) throw new UsageError("the USER is required");
    const fields = { user_id, ...changeFields(call) };
    const expected = await eraseInEach(services, { ...fields, dry_run: true });
    const done = fields.dry_run || expected.waiting > 0
      ? expected
      : await eraseInEach(services, fields);
    const isDone = done.waiting === 0;
    return {
      problem: !isDone,
      json: { ...done, erased: isDone && !fields.dry_run },
      text: isDone ? erasedText(done, fields.dry_run) : waitingText(done.waiting),
    };
  },
};

interface Done {
  operation_id: string | undefined;
  waiting: number;
  rows: Record<string, number>;
}

// One service after the other: if one has an event on its way, the next ones are left as they are. The
// one that lets users in comes first, and says how the others write the id; then those that make events
// of what users do, before those that receive the events.
async function eraseInEach(services: Service[], fields: ErasureBody): Promise<Done> {
  const done: Done = { operation_id: undefined, waiting: 0, rows: {} };
  let { user_id } = fields;
  const body = () => ({ ...fields, user_id, operation_id: done.operation_id });
  const erasing = services.filter(({ looks }) => looks.erasesUsers)
    .sort((a, b) =>
      Number(b.looks.erasesUsers === "first") - Number(a.looks.erasesUsers === "first")
    );
  for (const { api } of erasing) {
    for await (const page of api.pages(route, body)) {
      done.operation_id = page.operation_id;
      user_id = page.user_id ?? user_id;
      done.waiting += page.waiting;
      for (const [table, number] of Object.entries(page.rows)) {
        done.rows[table] = (done.rows[table] ?? 0) + number;
      }
      if (done.waiting > 0) return done;
    }
  }
  return done;
}

function erasedText({ rows }: Done, dryRun: boolean): string {
  const found = Object.fromEntries(Object.entries(rows).filter(([, number]) => number > 0));
  const sum = Object.values(found).reduce((sum, number) => sum + number, 0);
  if (sum === 0) return "Nothing is known of this user.";
  const summary = dryRun
    ? `${count(sum, "row")} would be erased.`
    : `${count(sum, "row")} erased. The stream deletes its events after 7 days.`;
  return [list(found), "", summary].join("\n");
}

function waitingText(waiting: number): string {
  return `${count(waiting, "event")} of this user ${
    waiting === 1 ? "is" : "are"
  } still on the way. ` +
    "Nothing more was erased: try again when all of them are sent.";
}
