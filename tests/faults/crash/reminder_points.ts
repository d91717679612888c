// Crashes of the small service (docs/new-service.md) between the claim of a reminder and its event.
import assert from "node:assert/strict";
import { ask } from "../../../tools/servers/asking.ts";
import { reminders } from "../../reminders/fire_reminders.ts";
import { counts, freshPlace, startReminders } from "../../reminders/started.ts";
import { natsUrl } from "../../support/streams.ts";
import { leasedPoints } from "./leased_points.ts";
import { tableLeases } from "./table_leases.ts";
import { observe } from "./observer.ts";
import type { CrashPoint, System } from "./point.ts";

type Service = "reminders";
type Reminders = System<Service>;

export const reminderPoints: CrashPoint<Service, Reminders>[] = leasedPoints<Service, Reminders>({
  of: "reminders",
  leases: tableLeases({
    of: "reminders",
    table: reminders,
    withholds: "update outbox_events", // a claim of the relay
  }),
  maxAttempts: "REMINDERS_FIRING_MAX_ATTEMPTS",
  words: {
    ...{ row: "reminder", rows: "reminders", attempts: "reminder attempts" },
    ...{ work: "firing", worked: "fired" },
  },
  add: ({ owners }) =>
    ask(
      owners.reminders,
      "insert into reminders values (gen_random_uuid(), 'ann', 'call', now())",
    ),
  before: {},
  adds: {}, // the settle adds the event
  finished: {
    ends: {
      ...{ "reminders FIRED": 1, "events PUBLISHED": 1 },
      ...{ received: 1, counted: 1, "in the stream": 1 },
    },
    seen: "One event, counted once",
  },
  again: { next: "The lease expires; the reminder is claimed and fired again" },
  settled: {
    next: "The event is in the outbox; the relay claims it",
    also: { is: "its event", table: "outbox_events", counts: { "events PENDING": 1 } },
  },
  gaveUp: { seen: "No event; the reminder is FAILED, and the log says so" },
});

export async function openReminders(): Promise<Reminders> {
  await using opened = new AsyncDisposableStack();
  const { ownerUrl, settings } = opened.use(await freshPlace());
  const [stream = "", durable = ""] = ["STREAM", "DURABLE"]
    .map((name) => settings[`REMINDERS_NATS_${name}`]);
  const databases = { reminders: { ownerUrl, counts } };
  const observer = opened.use(await observe({ databases, natsUrl, stream, durable }));
  const closing = opened.move();
  return {
    settings: { ...settings, REMINDERS_FIRING_POLL_INTERVAL: "50ms" },
    shortLeases: { REMINDERS_FIRING_LEASE: "1s" },
    owners: { reminders: ownerUrl },
    observer,
    start: (_, own, change) => startReminders(own, change),
    goOn: (_, all) => startReminders(all),
    async assertHolds() {
      const leased = await ask(
        ownerUrl,
        `select claim_token from reminders where claim_token is not null
         union all select claim_token from outbox_events where claim_token is not null`,
      );
      assert.deepEqual(leased, []);
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
