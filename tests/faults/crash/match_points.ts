// Crashes on the way of a ticket to its match or its end, and of the event of that to the stream.
import { group } from "../../../matchmaking/publish_events.ts";
import { scripts } from "../../../matchmaking/scripts/scripts.ts";
import { natsUrl, refuseMessagesIn } from "../../support/streams.ts";
import { command, type FaultPoint, running } from "./fault_point.ts";
import { leasedPoints } from "./leased_points.ts";
import { events, joining, type MatchPoint, type MatchStage, onTicket } from "./match_stage.ts";
import { streamLeases } from "./stream_leases.ts";

const of = "matchmaking" as const;
const noWorker = { MATCHMAKING_WORKER_ENABLED: "false" };
const rarely = { MATCHMAKING_OUTBOX_POLL_INTERVAL: "2s" }; // the relay shall not be in between

const queued = { "tickets QUEUED": 1 };
const cancelled = { "tickets CANCELLED": 1 };
const matched = { "tickets MATCHED": 2, "in the stream": 2 };
const expired = { "tickets EXPIRED": 1 };
const published = { ...expired, "in the stream": 1 };

const join = running(scripts.join);
const pair = running(scripts.pair);
const publishedAgain =
  "It is published again with the same Nats-Msg-Id; the stream drops and acknowledges it";
const waits = "The user asked before, and may ask again";
const repeats = "No answer; the request is carried out when it is repeated with its key";

const addExpired = async (stage: MatchStage) => {
  await stage.wait("ann", 1);
  await stage.expire();
};

export const matchPoints: MatchPoint[] = [
  {
    dies: "before a join is stored",
    of,
    at: command("before", join),
    meanwhile: (stage, { url }) => stage.askInVain(url, joining("ann")),
    leaves: {},
    next: "Nothing",
    ends: queued,
    seen: repeats,
  },
  {
    dies: "after a join is stored, before the answer",
    of,
    at: command("after", join),
    meanwhile: (stage, { url }) => stage.askInVain(url, joining("ann")),
    leaves: queued,
    next: "The ticket waits in Redis; every replica pairs it",
    ends: queued,
    seen: "No answer; the repeated request gets the same ticket",
  },
  {
    dies: "after a join is stored, before the pairing",
    of,
    at: command("before", pair, { since: join }),
    before: (stage) => stage.wait("bob"),
    meanwhile: (stage, { url }) => stage.tryTo(url, joining("ann")),
    leaves: { "tickets QUEUED": 2 },
    next: "The next look at the queues pairs both",
    ends: matched,
    seen: waits,
  },
  {
    dies: "after the pairing, before anybody is told and the relay is woken",
    of,
    at: command("after", pair, { since: join }),
    before: (stage) => stage.wait("bob"),
    meanwhile: waitInVain,
    leaves: { "tickets MATCHED": 2, "events WAITING": 2 },
    next: "Match and events are one step of Redis; a relay finds the events",
    ends: matched,
    seen: "No answer to the user who waited; asked again, the ticket is MATCHED",
  },
  {
    dies: "when the time of a ticket is over, before it is expired",
    of,
    ownSettings: { ...noWorker, MATCHMAKING_TICKET_TTL: "1ms" },
    meanwhile: async (stage, service) => {
      await stage.ask(service.url, joining("ann"));
      await service.kill();
    },
    leaves: queued,
    next: "The next look expires it, by the clock of Redis",
    ends: published,
    seen: waits,
  },
  {
    dies: "after a ticket is expired, before anybody is told and the relay is woken",
    of,
    at: command("after", "EVALSHA", { answered: String.raw`^\[1,(0|\[\],1),` }), // whichever finds it
    ownSettings: { ...rarely, MATCHMAKING_TICKET_TTL: "1s" },
    meanwhile: async (stage, { url }) => {
      await stage.ask(url, joining("ann"));
      await stage.askInVain(url, onTicket("GET", "ann", await stage.idOf("ann"), "?wait=20s"));
    },
    leaves: { ...expired, "events WAITING": 1 },
    next: "State and event are one step of Redis; a relay finds the event",
    ends: published,
    seen: "No answer to the user who waited; asked again, the ticket is EXPIRED",
  },
  {
    dies: "after a look at a ticket has expired it, before the answer",
    of,
    at: command("after", running(scripts.read)),
    ownSettings: noWorker,
    meanwhile: async (stage, { url }) => {
      const id = await stage.wait("ann", 1);
      await stage.askInVain(url, onTicket("GET", "ann", id));
    },
    leaves: { ...expired, "events WAITING": 1 },
    next: "A relay finds the event",
    ends: published,
    seen: "No answer; asked again, the ticket is EXPIRED",
  },
  {
    dies: "after a broken ticket was found, before the relay is woken",
    of,
    at: command("after", pair, { answered: String.raw`^\[1,\[\],0,1\]` }),
    ownSettings: rarely,
    meanwhile: async (stage, { url }) => {
      await stage.untilReady(url);
      const id = await stage.wait("ann");
      await stage.redis("HDEL", `mm:{casual}:ticket:${id}`, "created_ms");
    },
    leaves: { "tickets INVALID": 1, "events WAITING": 1 },
    next: "A relay finds the event",
    ends: { "tickets INVALID": 1, "in the stream": 1 },
    seen: "The ticket is INVALID",
  },
  ...(["before", "after"] as const).map((when): MatchPoint => ({
    dies: when === "before" ? "before a cancel" : "after a cancel, before the answer",
    of,
    at: command(when, running(scripts.cancel)),
    meanwhile: async (stage, { url }) => {
      const id = await stage.wait("ann");
      await stage.askInVain(url, onTicket("DELETE", "ann", id));
    },
    leaves: when === "before" ? queued : cancelled,
    next: "Nothing",
    ends: cancelled,
    seen: when === "before"
      ? "No answer; the repeated request cancels the ticket"
      : "No answer; the repeated request finds the ticket CANCELLED",
  })),
  ...leasedPoints<typeof of, MatchStage>({
    of,
    leases: streamLeases({ stream: events, group, urlOf: ({ owners }) => owners.matchmaking }),
    maxAttempts: "MATCHMAKING_OUTBOX_MAX_ATTEMPTS",
    words: {
      ...{ row: "event", rows: "events", attempts: "event attempts" },
      ...{ work: "publish", worked: "published" },
    },
    add: addExpired,
    before: expired,
    adds: { "in the stream": 1 },
    finished: { ends: published, seen: "The ticket is EXPIRED before and after" },
    again: { next: publishedAgain },
    settled: { next: "Nothing" },
    gaveUp: {
      seen: "The ticket is EXPIRED; its event is a dead letter in Redis, and the log says so",
    },
    fails: { begin: ({ stream }) => refuseMessagesIn(natsUrl, stream) },
  }),
  ...([
    ["after publishing, before the PubAck", { when: "after", what: "publish", part: ".events" }],
    ["within the settle, between XACK and XDEL", command("before", "XDEL")],
    ["within the settle, after XDEL and before EXEC", command("before", "EXEC")],
  ] as [string, FaultPoint][]).map(([dies, at]): MatchPoint => ({
    ...{ dies, of, at },
    before: addExpired,
    leaves: { ...expired, "events LEASED": 1, "in the stream": 1 },
    next: publishedAgain,
    ends: published,
    seen: "The ticket is EXPIRED before and after",
  })),
  {
    dies: "before the settle, and the stream's duplicate window is over",
    of,
    at: command("before", "XACK"),
    settings: { MATCHMAKING_NATS_DUPLICATE_WINDOW: "100ms" },
    before: addExpired,
    leaves: { ...expired, "events LEASED": 1, "in the stream": 1 },
    next: "It is published again and stored twice; processed_events removes the duplicate",
    ends: { ...expired, "in the stream": 2 },
    seen: "The ticket is EXPIRED before and after",
  },
];

/** Bob waits at the process while Ann joins. */
async function waitInVain(stage: MatchStage, { url }: { url: string }): Promise<void> {
  const id = await stage.idOf("bob");
  await stage.askInVain(url, onTicket("GET", "bob", id, "?wait=20s"), joining("ann"));
}
