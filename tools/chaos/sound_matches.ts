// The evidence about the players of a small run, for tests that damage it: a match, a ticket that was
// cancelled and one that expired, one that was wiped with Redis, and an event that was wiped with its
// stream before it was received.
import { eventIdOf } from "../../proto/matchmaking/event_id.ts";
import type { Evidence } from "./evidence.ts";
import type { MatchCall, MatchCallKind } from "./match_clients.ts";
import type { MatchEvent, TicketRow } from "./invariants/match_tables.ts";

const playerOf = (name: string) => `player-${name}`;
const match = "3b1c9a54-7d2e-8f60-a1b2-c3d4e5f60718";
const ticketOf = (name: string) => `casual-${name}`;

function row(name: string, status: string, peer?: string): TicketRow {
  return {
    ...{ ticket_id: ticketOf(name), user_id: playerOf(name), mode: "casual", status },
    match_id: peer === undefined ? null : match,
    peers: peer === undefined ? [] : [playerOf(peer)],
  };
}

const ann = row("ann", "MATCHED", "bob");
const bob = row("bob", "MATCHED", "ann");
const cid = row("cid", "CANCELLED");
const dan = row("dan", "EXPIRED");
const eve = row("eve", "QUEUED"); // wiped
const fay = row("fay", "EXPIRED"); // wiped, and its event was in the stream

function event({ ticket_id, user_id, match_id, peers }: TicketRow): MatchEvent {
  const event_type = match_id === null ? "TicketExpired" : "MatchFound";
  const fields = { event_type, ticket_id, user_id, match_id };
  return { ...fields, event_id: eventIdOf(fields), peer_user_ids: peers };
}

const inOrder = (...rows: TicketRow[]) =>
  rows.map((one, i) => ({ ...event(one), sequence: i + 1 }));

function call(
  kind: MatchCallKind,
  { ticket_id, user_id, match_id, peers }: TicketRow,
  sentAt: number,
  status: string,
): MatchCall {
  const isJoin = kind !== "look" && kind !== "cancel";
  const matched = match_id === null || status === "QUEUED"
    ? null
    : { match_id, peer_user_ids: peers };
  const body = JSON.stringify({ ticket_id, status, ...(isJoin ? {} : { matched }) });
  return {
    ...{ kind, userId: user_id, mode: "casual", key: `key of ${ticket_id}`, sentAt },
    ...{ ticketId: isJoin ? "" : ticket_id, answeredAt: sentAt + 5, attempts: 1 },
    answer: { status: 200, body },
  };
}

const refused = (one: MatchCall, status: number, code: string): MatchCall => ({
  ...one,
  answer: { status, body: JSON.stringify({ code, message: "" }) },
});

export function soundMatches(): Pick<Evidence, "matches"> {
  const calls = [
    call("join", ann, 0, "QUEUED"),
    call("again", ann, 10, "QUEUED"),
    call("join", bob, 20, "QUEUED"),
    call("look", ann, 30, "MATCHED"),
    call("cancel", bob, 40, "MATCHED"),
    refused(call("other", bob, 50, ""), 409, "IDEMPOTENCY_KEY_CONFLICT"),
    call("join", cid, 60, "QUEUED"),
    call("cancel", cid, 70, "CANCELLED"),
    call("join", dan, 80, "QUEUED"),
    call("look", dan, 90, "EXPIRED"),
    call("join", eve, 100, "QUEUED"),
    refused(call("look", eve, 2_100, ""), 404, "MATCHMAKING_TICKET_NOT_FOUND"),
    call("look", fay, 110, "EXPIRED"),
  ];
  const told = [event(ann), event(bob), event(dan)];
  return structuredClone({
    matches: {
      calls,
      store: { tickets: [ann, bob, cid, dan], unpublished: [], dead: [], queued: 0 },
      stream: inOrder(bob, dan),
      wipedStores: [{ at: 2_000, tickets: [eve, fay], unpublished: [], dead: [], queued: 2 }],
      wipedStreams: [{ at: 1_000, events: inOrder(ann, fay), received: 1 }],
      notifications: told.map(({ event_id, user_id, event_type }) => ({
        ...{ event_id, user_id, type: event_type, status: "SENT" },
      })),
    },
  });
}
