import { uuidv5 } from "../uuidv5.ts";

// The id of an event follows from what happened, so an event that is published again has the same
// id, and receivers find it to be a duplicate.

interface Identity {
  event_type: string;
  match_id: string | null;
  user_id: string;
  ticket_id: string;
}

// Other services and other tools can compute these ids, so they use the names of the schema.
const nameOfType = new Map([
  ["TicketExpired", "TICKET_EXPIRED"],
  ["TicketInvalid", "TICKET_INVALID"],
]);

export function eventIdOf({ event_type, match_id, user_id, ticket_id }: Identity): string {
  if (event_type === "MatchFound") return idWithin(match_id ?? "", user_id);
  return idWithin(ticket_id, nameOfType.get(event_type) ?? event_type);
}

const uuidAtEnd = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const urlNamespace = "6ba7b811-9dad-11d1-80b4-00c04fd430c8"; // of RFC 9562

// A ticket id is its mode, `-` and a UUID. A broken one may have no UUID at its end, and its event
// needs an id nevertheless.
function idWithin(id: string, name: string): string {
  const namespace = uuidAtEnd.exec(id)?.[0];
  return namespace ? uuidv5(namespace, name) : uuidv5(urlNamespace, id + name);
}
