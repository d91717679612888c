// The checker notices each damage to the evidence about players, tickets and matches.
import type { Evidence } from "./evidence.ts";
import { type Harm, testHarms } from "./harms.ts";
import type { MatchCall } from "./match_clients.ts";
import { first } from "./sound_evidence.ts";

type Matches = Evidence["matches"];

const ticketOf = ({ store }: Matches, name: string) =>
  first(store.tickets, ({ ticket_id }) => ticket_id === `casual-${name}`);
const callAt = ({ calls }: Matches, time: number) => first(calls, ({ sentAt }) => sentAt === time);

function say(call: MatchCall, said: Record<string, unknown>): void {
  const body = JSON.parse(call.answer?.body ?? "{}");
  call.answer = { status: 200, body: JSON.stringify({ ...body, ...said }) };
}

function refuse(call: MatchCall, status: number, code: string): void {
  call.answer = { status, body: JSON.stringify({ code, message: "" }) };
}

const without = <Row extends { ticket_id: string }>(rows: Row[], name: string) =>
  rows.filter(({ ticket_id }) => ticket_id !== `casual-${name}`);

const harms: [harm: string, found: RegExp, plant: (matches: Matches) => void][] = [
  [
    "a match has only one ticket",
    /^22\./,
    (matches) => matches.store.tickets = without(matches.store.tickets, "bob"),
  ],
  [
    "a match has three tickets",
    /^22\./,
    ({ store: { tickets } }) =>
      tickets.push({ ...first(tickets), ticket_id: "casual-more", user_id: "player-more" }),
  ],
  [
    "a user was matched with themselves",
    /^22\./,
    (matches) =>
      Object.assign(ticketOf(matches, "bob"), { user_id: "player-ann", peers: ["player-ann"] }),
  ],
  [
    "peers do not name each other",
    /^22\./,
    (matches) => ticketOf(matches, "ann").peers = ["player-cid"],
  ],
  [
    "a match is across modes",
    /^22\./,
    (matches) => ticketOf(matches, "ann").mode = "rank",
  ],
  [
    "a cancelled ticket is in a match",
    /^22\./,
    (matches) => ticketOf(matches, "ann").status = "CANCELLED",
  ],
  [
    "a ticket that was wiped is there again",
    /^22\./,
    ({ store, wipedStores }) => store.tickets.push(first(first(wipedStores).tickets)),
  ],
  [
    "a match was not announced to one of its users",
    /^23\. The end/,
    (matches) => matches.stream = without(matches.stream, "bob"),
  ],
  [
    "an expired ticket was not announced",
    /^23\. The end/,
    (matches) => matches.stream = without(matches.stream, "dan"),
  ],
  [
    "a wiped ticket had ended without an event",
    /^23\. The end/,
    ({ wipedStreams }) => first(wipedStreams).events.pop(),
  ],
  [
    "an event names another match",
    /^23\. The end/,
    ({ stream }) => first(stream).match_id = "match-2",
  ],
  [
    "an event is of a ticket that has not ended so",
    /^23\. An event says/,
    ({ stream }) => stream.push({ ...first(stream), event_id: "other", ticket_id: "casual-cid" }),
  ],
  [
    "an event was published under another id",
    /^23\. An event says/,
    ({ stream }) => first(stream).event_id = "other",
  ],
  [
    "an event is twice in the stream",
    /^23\. A ticket/,
    ({ stream }) => stream.push({ ...first(stream), sequence: 3 }),
  ],
  [
    "a ticket has two events",
    /^23\. A ticket/,
    ({ stream }) => stream.push({ ...first(stream), event_id: "other", sequence: 3 }),
  ],
  [
    "an event of a ticket waits at the end",
    /^23\. No event/,
    ({ store, stream }) => store.unpublished.push(first(stream)),
  ],
  [
    "an event of a ticket was given up",
    /^23\. No event/,
    ({ wipedStores, stream }) => first(wipedStores).dead.push(first(stream)),
  ],
  ["a ticket waits for ever", /^24\./, (matches) => ticketOf(matches, "cid").status = "QUEUED"],
  ["a queue has a place without a ticket", /^24\./, ({ store }) => store.queued = 1],
  [
    "an acknowledged ticket is lost",
    /^25\. A ticket/,
    (matches) => matches.store.tickets = without(matches.store.tickets, "cid"),
  ],
  [
    "a ticket is of another user",
    /^25\. A ticket/,
    (matches) => ticketOf(matches, "cid").user_id = "player-dan",
  ],
  [
    "a ticket is not found although nothing was wiped",
    /^25\. Every request/,
    (matches) => refuse(callAt(matches, 90), 404, "MATCHMAKING_TICKET_NOT_FOUND"),
  ],
  [
    "a ticket is not found before it was wiped",
    /^25\. Every request/,
    (matches) => callAt(matches, 2_100).answeredAt = 1_500,
  ],
  [
    "a request about a ticket has no answer",
    /^25\. Every request/,
    (matches) => callAt(matches, 90).answer = undefined,
  ],
  [
    "a user without a ticket waits already",
    /^25\. Every request/,
    (matches) => refuse(callAt(matches, 80), 409, "MATCHMAKING_ALREADY_QUEUED"),
  ],
  [
    "a used key takes other attributes",
    /^25\. Every request/,
    (matches) => callAt(matches, 50).answer = callAt(matches, 20).answer,
  ],
  [
    "a key leads to two tickets",
    /^25\. The same key/,
    (matches) => say(callAt(matches, 10), { ticket_id: "casual-dan" }),
  ],
  [
    "a user was told of another end",
    /^26\. A ticket/,
    (matches) => say(callAt(matches, 70), { status: "EXPIRED" }),
  ],
  [
    "a user was told of another peer",
    /^26\. A ticket/,
    (matches) =>
      say(callAt(matches, 30), { matched: { match_id: "match-1", peer_user_ids: ["player-cid"] } }),
  ],
  [
    "a ticket that was wiped had lost its end",
    /^26\. A ticket/,
    ({ wipedStores }) => first(first(wipedStores).tickets.slice(1)).status = "QUEUED",
  ],
  [
    "a ticket was MATCHED and then CANCELLED",
    /^26\. Once/,
    (matches) =>
      matches.calls.push({
        ...{ ...callAt(matches, 30), sentAt: 200, answeredAt: 205 },
        answer: { status: 200, body: '{"ticket_id":"casual-ann","status":"CANCELLED"}' },
      }),
  ],
  [
    "a ticket waits again after its end",
    /^26\. Once/,
    (matches) =>
      matches.calls.push({
        ...{ ...callAt(matches, 30), sentAt: 200, answeredAt: 205 },
        answer: { status: 200, body: '{"ticket_id":"casual-ann","status":"QUEUED"}' },
      }),
  ],
  [
    "a user was not told of a match",
    /^27\. An event/,
    ({ notifications }) => notifications.splice(1, 1),
  ],
  [
    "an event was received, and lost before the stream was wiped",
    /^27\. An event/,
    ({ notifications }) => notifications.shift(),
  ],
  [
    "a user was told of a match twice",
    /^27\. An event/,
    ({ notifications }) => notifications.push(first(notifications.slice(1))),
  ],
  [
    "the notification of a match failed",
    /^27\. An event/,
    ({ notifications }) => first(notifications).status = "FAILED",
  ],
  [
    "a user was told of what is not in the stream",
    /^27\. A notification/,
    ({ notifications }) => notifications.push({ ...first(notifications), event_id: "other" }),
  ],
];

testHarms(
  harms.map(([harm, found, plant]): Harm => [harm, found, ({ matches }) => plant(matches)]),
);
