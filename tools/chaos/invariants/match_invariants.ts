// Tickets, matches and events must belong together, whatever was killed.
import { eventIdOf } from "../../../proto/matchmaking/event_id.ts";
import { type Invariant, invariant } from "./invariant.ts";
import type { MatchEvent, MatchStore, StoredMatchEvent, TicketRow } from "./match_tables.ts";

/** What was in the servers, at the end and each time when one of them was wiped. */
export interface MatchTables {
  stores: MatchStore[]; // of Redis; the last one is there now
  streams: StoredMatchEvent[][]; // likewise
}

export function matchInvariantsOf(tables: MatchTables): Invariant[] {
  const tickets = tables.stores.flatMap((store) => store.tickets);
  return [
    ticketsAreInOneMatch(tickets),
    endsAreAnnounced(tables),
    eventsAreOfTickets(tables, tickets),
  ];
}

const typeOfEnd: Record<string, string> = {
  MATCHED: "MatchFound",
  EXPIRED: "TicketExpired",
  INVALID: "TicketInvalid",
};

function ticketsAreInOneMatch(tickets: TicketRow[]): Invariant {
  const ofMatch = Map.groupBy(
    tickets.filter(({ match_id }) => match_id !== null),
    ({ match_id }) => match_id,
  );
  const times = Map.groupBy(tickets, ({ ticket_id }) => ticket_id);
  return invariant(
    "22. A ticket is in a match if and only if it is MATCHED, with one of another user, and each names the other",
    tickets,
    ({ ticket_id, status, match_id, user_id, mode, peers }) => {
      if (times.get(ticket_id)?.length !== 1) return false;
      if (status !== "MATCHED") return match_id === null && peers.length === 0;
      const all = ofMatch.get(match_id) ?? [];
      const peer = all.find((other) => other.ticket_id !== ticket_id);
      return all.length === 2 && peer !== undefined && peer.mode === mode &&
        peer.user_id !== user_id && `${peers}` === peer.user_id;
    },
  );
}

/** A wiped Redis takes the events with it that were not published. */
function endsAreAnnounced({ stores, streams }: MatchTables): Invariant {
  const published = new Set(streams.flat().map(contentOf));
  const ended = stores.flatMap(({ tickets, unpublished, dead }) => {
    const waiting = new Set([...unpublished, ...dead].map(contentOf));
    return tickets.filter(({ status }) => typeOfEnd[status] !== undefined)
      .map((ticket) => ({ ...ticket, isWaiting: waiting.has(endOf(ticket)) }));
  });
  return invariant(
    "23. The end of a ticket, except by a cancel, has one event, which is in the stream, or is still in Redis",
    ended,
    (ticket) => ticket.isWaiting || published.has(endOf(ticket)),
  );
}

function eventsAreOfTickets({ stores, streams }: MatchTables, tickets: TicketRow[]): Invariant {
  const ends = new Set(tickets.map(endOf));
  return invariant(
    "23. An event says how a ticket has ended, and its id follows from that",
    [...streams.flat(), ...stores.flatMap(({ unpublished }) => unpublished)],
    (event) => ends.has(contentOf(event)) && event.event_id === eventIdOf(event),
  );
}

const endOf = ({ ticket_id, user_id, status, match_id, peers }: TicketRow) =>
  JSON.stringify([ticket_id, user_id, typeOfEnd[status], match_id, peers]);
const contentOf = (event: MatchEvent) =>
  JSON.stringify(
    [event.ticket_id, event.user_id, event.event_type, event.match_id, event.peer_user_ids],
  );
