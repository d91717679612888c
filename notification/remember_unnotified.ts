import { storeOnce } from "@kenri/shared/inbox/store_once.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { sql } from "@kenri/shared/postgres/sql.ts";
import type { Notification } from "./notification.ts";

// Nobody is notified of a broken ticket: its user may be unknown, and can do nothing about it.
export const unnotifiedTypes: ReadonlySet<string> = new Set(["TicketInvalid"]);

// Only remembers the events of which nobody is notified, so that they are stored once like all
// others; `notify` stores the rest. Returns for each event whether it was new.
export async function rememberUnnotified(
  database: Database,
  received: Notification[],
  notify: (events: Notification[]) => Promise<boolean[]>,
): Promise<boolean[]> {
  const silent = received.filter(({ type }) => unnotifiedTypes.has(type));
  if (silent.length === 0) return await notify(received);
  const others = received.filter(({ type }) => !unnotifiedTypes.has(type));
  const [silentAreNew, othersAreNew] = await Promise.all([
    storeOnce(database, silent, sql`select from new_event`),
    others.length === 0 ? [] : notify(others),
  ]);
  const newIds = new Set(
    [...silent, ...others]
      .filter((_, i) => [...silentAreNew, ...othersAreNew][i])
      .map(({ event_id }) => event_id),
  );
  return received.map(({ event_id }) => newIds.has(event_id));
}
