import {
  type Call,
  changeFields,
  changeHelp,
  changeOptions,
  type Command,
  UsageError,
} from "./command.ts";
import type { Service } from "./service.ts";
import { count, list } from "./text.ts";

interface Done {
  operation_id: string | undefined;
  waiting: number;
  rows: Record<string, number>;
}

export const eraseUser: Command = {
  usage: "erase-user USER",
  words: 1,
  summary: "puts a pseudonym in the place of a user, in both services, for good",
  options: changeOptions,
  help: `${changeHelp}

Takes the user id, the purchase ids and the idempotency keys out of entitlements, audit, outbox,
answers, notifications and dead letters. Counts stay, and so do the chains of the audit; who and
why is recorded, the user is not. Nothing is done while an event of the user is on its way.
Afterwards the same id is a new user. Safe to repeat; stream, logs and backups forget by themselves:
docs/privacy.md. Exit code 1 when something was on its way.`,
  async run(call) {
    const [user_id] = call.positionals;
    if (user_id === undefined) throw new UsageError("the USER is required");
    const fields = { user_id, ...changeFields(call) };
    const expected = await eraseInBoth(call, { ...fields, dry_run: true });
    const done = fields.dry_run || expected.waiting > 0
      ? expected
      : await eraseInBoth(call, fields);
    const rows = Object.entries(done.rows).filter(([, number]) => number > 0);
    const isDone = done.waiting === 0;
    return {
      problem: !isDone,
      json: { ...done, erased: isDone && !fields.dry_run },
      text: isDone
        ? [
          ...(rows.length > 0 ? [list(rows), ""] : []),
          sentence(rows.reduce((sum, [, number]) => sum + number, 0), fields.dry_run),
        ].join("\n")
        : `${count(done.waiting, "event")} of this user ${
          done.waiting === 1 ? "is" : "are"
        } still on the way. Nothing more was erased: try again when all is sent.`,
    };
  },
};

function sentence(rows: number, dryRun: boolean): string {
  if (rows === 0) return "Nothing is known of this user.";
  if (dryRun) return `${count(rows, "row")} would be erased.`;
  return `${count(rows, "row")} erased. The stream forgets its events after 7 days.`;
}

async function eraseInBoth(
  { entitlement, notification }: Call,
  fields: Record<string, unknown>,
): Promise<Done> {
  const done: Done = { operation_id: undefined, waiting: 0, rows: {} };
  for (const service of [entitlement, notification]) {
    await eraseIn(service, fields, done);
    if (done.waiting > 0) break;
  }
  return done;
}

async function eraseIn(
  service: Service,
  fields: Record<string, unknown>,
  done: Done,
): Promise<void> {
  const body = () => ({ ...fields, operation_id: done.operation_id });
  for await (const page of service.changePages("erase-user", body)) {
    done.operation_id = page.operation_id;
    done.waiting += page.waiting;
    for (const [table, number] of Object.entries<number>(page.rows)) {
      done.rows[table] = (done.rows[table] ?? 0) + number;
    }
    if (done.waiting > 0) return;
  }
}
