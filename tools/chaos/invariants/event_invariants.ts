// Each event must reach the stream, and then the other database, once, and finish there.
import type { SendRecord } from "./invariants.ts";
import { changeOf, type IndexedTables, type Invariant, invariant } from "./invariant.ts";

export function eventsEnd({ events }: IndexedTables): Invariant {
  const places = Map.groupBy(events, ({ place }) => place);
  return invariant(
    "2. An outbox row ends PUBLISHED, at a position of its own in the stream, or FAILED with an error",
    events,
    ({ status, place, last_error }) =>
      status === "PUBLISHED"
        ? place !== null && places.get(place)?.length === 1
        : status === "FAILED" && last_error !== null,
  );
}

export function eventsArriveOnce({ events, processed, notificationsOf }: IndexedTables): Invariant {
  const published = events.filter(({ status }) => status === "PUBLISHED");
  return invariant(
    "3. A published event has one processed_events row and one notification",
    [...new Set([...published.map(({ event_id }) => event_id), ...processed])],
    (eventId) => processed.has(eventId) && notificationsOf.get(eventId)?.length === 1,
  );
}

export function nothingIsInvented(
  { notifications, auditOf, notificationsOfChange }: IndexedTables,
): Invariant {
  return invariant(
    "3. A notification belongs to a committed change, and no change has two",
    notifications,
    (row) =>
      auditOf.get(changeOf(row))?.length === 1 &&
      notificationsOfChange.get(changeOf(row))?.length === 1,
  );
}

export function notificationsEnd({ notifications, deadLettersOf }: IndexedTables): Invariant {
  return invariant(
    "4. A notification ends SENT without a dead letter, or FAILED with exactly one",
    notifications,
    ({ notification_id, status, has_time }) => {
      const letters = deadLettersOf.get(notification_id)?.length ?? 0;
      return status === "SENT" ? has_time && letters === 0 : status === "FAILED" && letters === 1;
    },
  );
}

export function deadLettersAreOfFailures({ notifications, deadLetters }: IndexedTables): Invariant {
  const failed = notifications.filter(({ status }) => status === "FAILED");
  const ids = new Set(failed.map(({ notification_id }) => notification_id));
  return invariant(
    "4. A dead letter belongs to a FAILED notification",
    deadLetters,
    ({ notification_id }) => ids.has(notification_id),
  );
}

export function everySendIsKnown({ notifications }: IndexedTables, sends: SendRecord[]): Invariant {
  const eventOf = new Map(notifications.map((row) => [row.notification_id, row.event_id]));
  return invariant(
    "4. Every send belongs to a notification and carries its id",
    sends,
    ({ notification_id, event_id }) => eventOf.get(notification_id) === event_id,
  );
}

export function whatIsSentWasSent(
  { notifications }: IndexedTables,
  sends: SendRecord[],
): Invariant {
  const sent = new Set(sends.map(({ notification_id }) => notification_id));
  return invariant(
    "4. The channel has sent every SENT notification",
    notifications.filter(({ status }) => status === "SENT"),
    ({ notification_id }) => sent.has(notification_id),
  );
}

export function noLeaseIsLeft(
  { events, notifications, reservations, orders }: IndexedTables,
): Invariant {
  return invariant(
    "5. A worker that lost its lease leaves nothing behind: no finished row has a lease",
    [...events, ...notifications, ...reservations, ...orders],
    ({ leased }) => !leased,
  );
}
