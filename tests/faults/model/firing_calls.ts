// The reminders of the small service (docs/new-service.md), and the real functions that change them.
import { query, type Transaction } from "../../../shared/postgres/postgres.ts";
import { freshDatabaseOf } from "../../support/databases.ts";
import { createReminder } from "../../reminders/create_reminder.ts";
import { reminders } from "../../reminders/fire_reminders.ts";
import { migrations } from "../../reminders/started.ts";
import {
  asRecords,
  byEvent,
  idOf,
  type LeasedCalls,
  leasedCalls,
  leasedColumns,
  leasedValues,
  rowOfModel,
  type StoredRow,
  tokenOf,
} from "./leased_rows.ts";
import {
  type Changed,
  RealCalls,
  type Rewrite,
  type TableAccess,
  type View,
} from "./real_calls.ts";
import { type Event, events, type ReminderRow, type Reminders } from "./state.ts";

export interface FiringCalls extends LeasedCalls<Reminders> {
  real: RealCalls<Reminders>;
  create(reminders: Reminders, event: Event, early: boolean): Promise<Changed<Reminders, unknown>>;
}

export function firingCalls(rewrite?: Rewrite): FiringCalls {
  const real = new RealCalls(access, rewrite);
  return {
    real,
    ...leasedCalls(real, {
      claim: reminders.claim,
      keep: reminders.extend,
      settle: reminders.settle,
      resultAt: () => {},
    }, { ofRow: onlyRow }),
    create: (tables, event, early) =>
      real.after(tables, `create ${event} ${early}`, (database) => {
        const tx = database as unknown as Transaction; // which one statement does not need
        return createReminder.apply.reminder(tx, [asReminder(event, early)], undefined);
      }, { view: onlyRow(event) }),
  };
}

// With its event a settle names earlier events, but it reads none, as the event is handed to nobody.
const onlyRow = (event: Event): View<Reminders> => ({
  of: ({ rows }) => ({ rows: rows.map((row, at) => at === event ? row : null) }),
  unread: /from reminders earlier/,
});

const hourMs = 3_600_000;

function asReminder(event: Event, early: boolean) {
  const at = Date.now() + (early ? hourMs : -hourMs) + event * 1_000;
  return {
    ...{ kind: "reminder" as const, reminder_id: idOf(event), text: "call" },
    ...{ user_id: events[event]?.key ?? "", remind_at: new Date(at).toISOString() },
  };
}

const access: TableAccess<Reminders> = {
  freshDatabase: () => freshDatabaseOf("reminders", migrations),
  names: ["reminders", "reminder_attempts", "outbox_events"],
  tokenOf,
  load: ({ rows }) =>
    `insert into reminders (reminder_id, user_id, text, remind_at, ${leasedColumns})
     select id, key, 'call',
       now() + case when early then interval '1 hour' else interval '-1 hour' end
         + version * interval '1 second',
       ${leasedValues}
     from ${asRecords(rows, "early boolean")};
     insert into outbox_events (event_id, event_type, aggregate_key, payload, created_at)
     select id, 'ReminderFired', key, '{}', born
     from ${asRecords(rows, "announced int")}
     where announced > 0`,
  lock: (event) => `select from reminders where reminder_id = '${idOf(event)}' for update`,
  async read(owner) {
    const found = await query<StoredRow<ReminderRow>>(
      owner,
      `select reminder_id as event_id, ${rowOfModel}, remind_at > now() as early,
         (select count(*)::int from outbox_events where event_id = reminder_id) as announced
       from reminders`,
    );
    const { rows, tokens } = byEvent<ReminderRow>(found);
    return { tokens, tables: { rows } };
  },
};
