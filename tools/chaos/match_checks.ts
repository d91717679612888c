// What must hold of players in a chaos run: what they were told is true and stays so, each ticket ends,
// and each end is told to its user once. What was in a server when it was wiped may be missing, and
// nothing else.
import type { Evidence } from "./evidence.ts";
import { type Invariant, invariant } from "./invariants/invariant.ts";
import { matchInvariantsOf } from "./invariants/match_invariants.ts";
import type { MatchStore, StoredMatchEvent, TicketRow } from "./invariants/match_tables.ts";
import { type MatchCall, type Said, saidBy } from "./match_clients.ts";
import type { WipedStore, WipedStream } from "./wipes.ts";

export interface MatchEvidence {
  calls: MatchCall[];
  /** What is in Redis and in the stream at the end. */
  store: MatchStore;
  stream: StoredMatchEvent[];
  wipedStores: WipedStore[];
  wipedStreams: WipedStream[];
  notifications: MatchNotification[];
}

export interface MatchNotification {
  event_id: string;
  user_id: string;
  type: string;
  status: string;
}

export function matchChecks({ matches }: Evidence): Invariant[] {
  const { store, stream, wipedStores, wipedStreams } = matches;
  const stores = [...wipedStores, store];
  const streams = [...wipedStreams.map(({ events }) => events), stream];
  const known: Known = {
    tickets: new Map(stores.flatMap(({ tickets }) => tickets).map((row) => [row.ticket_id, row])),
    wiped: new Map(
      wipedStores.flatMap(({ tickets, at }) =>
        tickets.map((row) => [row.ticket_id, { ...row, at }])
      ),
    ),
  };
  return [
    ...matchInvariantsOf({ stores, streams }),
    eventsAreStoredOnce(streams),
    nothingWaitsAtTheEnd(matches),
    ticketsEnd(matches),
    ticketsAreKept(matches, known),
    requestsAreAnswered(matches, known),
    keysLeadToOneTicket(matches, known),
    whatWasToldIsTrue(matches, known),
    endsStay(matches),
    endsAreTold(matches),
    nothingIsMadeUp(matches, streams),
  ];
}

interface Known {
  tickets: Map<string, TicketRow>;
  wiped: Map<string, TicketRow & { at: number }>; // with the time of the loss
}

function eventsAreStoredOnce(streams: StoredMatchEvent[][]): Invariant {
  const ofTicket = Map.groupBy(streams.flat(), ({ ticket_id }) => ticket_id);
  const repeated = new Set(streams.flatMap((stream) => {
    const ofId = Map.groupBy(stream, ({ event_id }) => event_id);
    return [...ofId].filter(([, all]) => all.length > 1).map(([id]) => id);
  }));
  return invariant(
    "23. A ticket has only one event, which a stream has once",
    streams.flat(),
    ({ event_id, ticket_id }) =>
      !repeated.has(event_id) &&
      ofTicket.get(ticket_id)?.every((other) => other.event_id === event_id) === true,
  );
}

function nothingWaitsAtTheEnd({ store, wipedStores }: MatchEvidence): Invariant {
  return invariant(
    "23. No event of a ticket is given up, and at the end none waits in Redis",
    [...wipedStores.map(({ dead }) => dead), store.dead, store.unpublished],
    (events) => events.length === 0,
  );
}

function ticketsEnd({ store }: MatchEvidence): Invariant {
  return invariant(
    "24. Every ticket ends, and leaves no place in a queue",
    [...store.tickets, {
      ticket_id: "places in queues",
      status: store.queued === 0 ? "" : "QUEUED",
    }],
    ({ status }) => status !== "QUEUED",
  );
}

function ticketsAreKept({ calls }: MatchEvidence, { tickets }: Known): Invariant {
  return invariant(
    "25. A ticket that a client was told of is in Redis, with its user and mode, or was when Redis was wiped",
    calls.flatMap((call) => {
      const said = saidBy(call);
      return said ? [{ ...call, said }] : [];
    }),
    ({ said, userId, mode }) => {
      const row = tickets.get(said.ticket_id);
      return row?.user_id === userId && row.mode === mode;
    },
  );
}

/** Only who lost a ticket with Redis may find it missing, or a ticket that a late request made. */
function requestsAreAnswered({ calls }: MatchEvidence, { wiped }: Known): Invariant {
  const lostAt = new Map<string, number>();
  for (const { user_id, at } of wiped.values()) {
    lostAt.set(user_id, Math.min(at, lostAt.get(user_id) ?? Infinity));
  }
  return invariant(
    "25. Every request about a ticket was answered in the end, and refused only if Redis was wiped or the key used",
    calls,
    ({ kind, userId, ticketId, answer, answeredAt }) => {
      if (answer === undefined) return false;
      const { code } = JSON.parse(answer.body);
      if (code === "MATCHMAKING_TICKET_NOT_FOUND") {
        return (wiped.get(ticketId)?.at ?? Infinity) < answeredAt;
      }
      const hadLost = (lostAt.get(userId) ?? Infinity) < answeredAt;
      if (code === "MATCHMAKING_ALREADY_QUEUED") return hadLost;
      if (kind === "other") {
        return code === "IDEMPOTENCY_KEY_CONFLICT" || (answer.status === 200 && hadLost);
      }
      return answer.status === 200;
    },
  );
}

function keysLeadToOneTicket({ calls }: MatchEvidence, { wiped }: Known): Invariant {
  const joins = calls.filter(({ kind }) => kind === "join" || kind === "again");
  return invariant(
    "25. The same key leads to the same ticket, unless Redis was wiped with it",
    [...Map.groupBy(joins, ({ key }) => key).values()],
    (all) => {
      const ids = new Set(all.flatMap((call) => saidBy(call)?.ticket_id ?? []));
      return [...ids].filter((id) => !wiped.has(id)).length <= 1;
    },
  );
}

const isEnd = ({ status }: Said) => status !== "QUEUED";
const viewOf = ({ matched }: Said) =>
  matched ? JSON.stringify([matched.match_id, matched.peer_user_ids]) : "";

function whatWasToldIsTrue({ calls }: MatchEvidence, { tickets }: Known): Invariant {
  return invariant(
    "26. A ticket has ended as its user was told, with that match and those peers",
    calls.flatMap((call) => {
      const said = saidBy(call);
      return said && isEnd(said) ? [{ kind: call.kind, said }] : [];
    }),
    ({ said }) => {
      const row = tickets.get(said.ticket_id);
      if (row?.status !== said.status) return false;
      if (said.matched === undefined) return true; // the answer to a join does not tell
      return viewOf(said) ===
        (row.match_id === null ? "" : JSON.stringify([row.match_id, row.peers]));
    },
  );
}

/** Whatever was wiped in between: there is no way back. */
function endsStay({ calls }: MatchEvidence): Invariant {
  const told = calls.flatMap((call) => {
    const said = saidBy(call);
    return said ? [{ ...said, sentAt: call.sentAt, answeredAt: call.answeredAt }] : [];
  });
  return invariant(
    "26. Once a ticket has ended, it has ended in the same way at every later look",
    [...Map.groupBy(told, ({ ticket_id }) => ticket_id).values()],
    (all) => {
      const ends = all.filter(isEnd);
      const since = Math.min(...ends.map(({ answeredAt }) => answeredAt));
      return new Set(ends.map(({ status }) => status)).size <= 1 &&
        new Set(ends.filter(({ matched }) => matched).map(viewOf)).size <= 1 &&
        all.every((said) => isEnd(said) || said.sentAt <= since);
    },
  );
}

/** A wiped stream takes the events with it that the consumer had not acknowledged. */
function endsAreTold({ stream, wipedStreams, notifications }: MatchEvidence): Invariant {
  const notificationsOf = Map.groupBy(notifications, ({ event_id }) => event_id);
  const mustBe = new Set([
    ...stream,
    ...wipedStreams.flatMap(({ events, received }) =>
      events.filter(({ sequence }) => sequence <= received)
    ),
  ].map(({ event_id }) => event_id));
  const all = [...wipedStreams.flatMap(({ events }) => events), ...stream];
  return invariant(
    "27. An event of a ticket has exactly one notification, which is SENT; one that was wiped with its stream before it was received has one at most",
    all.filter(({ event_type }) => event_type !== "TicketInvalid"),
    ({ event_id, event_type, user_id }) => {
      const [row, ...more] = notificationsOf.get(event_id) ?? [];
      if (!row) return !mustBe.has(event_id);
      return more.length === 0 && row.status === "SENT" && row.type === event_type &&
        row.user_id === user_id;
    },
  );
}

function nothingIsMadeUp(
  { notifications }: MatchEvidence,
  streams: StoredMatchEvent[][],
): Invariant {
  const known = new Set(streams.flat().map(({ event_id }) => event_id));
  return invariant(
    "27. A notification of a ticket belongs to an event of the stream",
    notifications,
    ({ event_id }) => known.has(event_id),
  );
}
