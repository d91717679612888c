// A user, the identity, the roles, the audit and the events must belong together, whatever was killed.
import type { AccountTables } from "./account_tables.ts";
import { type Invariant, invariant } from "./invariant.ts";

export function accountInvariantsOf(tables: AccountTables): Invariant[] {
  return [
    usersAreWhole(tables),
    auditAndEventsArePairs(tables),
    accountEventsEnd(tables),
    versionsOfAccountsHaveNoGap(tables),
    accountsAreAsTheirLastEvent(tables),
    endedSessionsAreRecorded(tables),
  ];
}

/** By the type of its event. */
const actionOf: Record<string, string> = {
  UserRegistered: "REGISTER",
  UserUpdated: "UPDATE",
  UserSuspended: "SUSPEND",
  UserResumed: "RESUME",
  RolesChanged: "CHANGE_ROLES",
  SessionsEnded: "END_SESSIONS",
  SessionEnded: "END_SESSION",
};
const changesAccount = ({ action }: { action: string }) => !action.startsWith("END_SESSION");

function usersAreWhole({ users, identities, audit }: AccountTables): Invariant {
  const known = new Set(users.map(({ user_id }) => user_id));
  const identitiesOf = Map.groupBy(identities, ({ user_id }) => user_id);
  const registrations = Map.groupBy(
    audit.filter(({ action }) => action === "REGISTER"),
    ({ user_id }) => user_id,
  );
  const all = [...users, ...identities, ...audit].map(({ user_id }) => user_id);
  return invariant(
    "16. A user exists with an identity and one registration, and nothing is of any other user",
    [...new Set(all)],
    (id) => known.has(id) && identitiesOf.has(id) && registrations.get(id)?.length === 1,
  );
}

function auditAndEventsArePairs({ audit, events }: AccountTables): Invariant {
  const auditOf = Map.groupBy(audit, ({ audit_id }) => audit_id);
  const eventsOf = Map.groupBy(events, ({ event_id }) => event_id);
  return invariant(
    "17. Each audit row of an account has exactly one event, which says the same, and each event one audit row",
    [...new Set([...auditOf.keys(), ...eventsOf.keys()])],
    (id) => {
      const [row, ...rows] = auditOf.get(id) ?? [];
      const [event, ...others] = eventsOf.get(id) ?? [];
      return row !== undefined && event !== undefined && rows.length + others.length === 0 &&
        actionOf[event.event_type] === row.action && event.user_id === row.user_id &&
        event.version === row.version && event.trace_id === row.trace_id &&
        event.session_id === row.session_id;
    },
  );
}

function accountEventsEnd({ events, inStream }: AccountTables): Invariant {
  const stored = new Set(inStream);
  const places = Map.groupBy(events, ({ place }) => place);
  return invariant(
    "17. An event of an account is PUBLISHED and in the stream, or FAILED with an error, and has no lease",
    events,
    ({ event_id, status, place, last_error, leased }) =>
      !leased &&
      (status === "PUBLISHED"
        ? stored.has(event_id) && place !== null && places.get(place)?.length === 1
        : status === "FAILED" && last_error !== null),
  );
}

function versionsOfAccountsHaveNoGap({ users, audit }: AccountTables): Invariant {
  const auditOf = Map.groupBy(audit, ({ user_id }) => user_id);
  return invariant(
    "18. The changes of an account have the versions 1, 2, 3 … up to its current one, and its epoch counts the ends of its sessions",
    users,
    ({ user_id, version, session_epoch }) => {
      const rows = auditOf.get(user_id) ?? [];
      const versions = rows.filter(changesAccount).map((row) => row.version).sort((a, b) => a - b);
      const ends = rows.filter(({ action }) => action === "END_SESSIONS").length;
      return versions.length === version && versions.every((found, i) => found === i + 1) &&
        session_epoch === 1 + ends;
    },
  );
}

function accountsAreAsTheirLastEvent({ users, events }: AccountTables): Invariant {
  const lastOf = new Map<string, AccountTables["events"][0]>();
  for (const event of events) {
    if (event.order > (lastOf.get(event.user_id)?.order ?? 0)) lastOf.set(event.user_id, event);
  }
  return invariant(
    "18. An account has the status, the roles, the version and the epoch of its last event",
    users,
    ({ user_id, status, roles, version, session_epoch }) => {
      const last = lastOf.get(user_id);
      return last?.account_status === status && `${last.roles}` === `${roles}` &&
        last.version === version && last.session_epoch === session_epoch;
    },
  );
}

function endedSessionsAreRecorded({ endedSessions, audit }: AccountTables): Invariant {
  const ends = Map.groupBy(
    audit.filter(({ action }) => action === "END_SESSION"),
    ({ session_id }) => session_id ?? "",
  );
  const ended = new Map(endedSessions.map(({ session_id, user_id }) => [session_id, user_id]));
  return invariant(
    "19. A session that ended alone has one row and one audit row",
    [...new Set([...ends.keys(), ...ended.keys()])],
    (id) => ends.get(id)?.length === 1 && ends.get(id)?.[0]?.user_id === ended.get(id),
  );
}
