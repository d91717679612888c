import type { ServiceConsole } from "@kenri/shared/console/console.tsx";
import { type Samples, workerCounters } from "@kenri/shared/console/samples.ts";
import { flowStage, queueStage, type Stage } from "@kenri/shared/console/stages.tsx";
import { age, perSecond, whole } from "@kenri/shared/console/text.ts";
import { looks, outboxQueue, pairingLateSeconds } from "./looks.ts";
import { matchmakingPage, matchmakingPath } from "./matchmaking_page.tsx";
import type { MatchmakingStatus } from "./status.ts";

// The console of this service: from a join to the stream.

const ended = (result: string) => ({ name: "mm_match_total", labels: { result } });
const counters = {
  matches: ended("matched"),
  expired: ended("expired"),
  cancelled: ended("cancelled"),
  invalid: ended("invalid"),
  ...workerCounters("relay"),
};
type Counter = keyof typeof counters;

export const matchmakingConsole: ServiceConsole<MatchmakingStatus, Counter> = {
  service: "matchmaking",
  looks,
  counters,
  stages: stagesOf,
  problems: (status) => looks.status?.problems?.(status) ?? [],
  duringOutageOfNats: "matches wait in Redis, and users who ask see them at once",
  after: { title: "Notification", about: "Both users find the match in their inbox." },
  meaningOfSteps: {
    CHANGED: "The ticket was matched or ended in the same step that wrote the event.",
    GAVE_UP: "It could not be published. Send it back once the cause is fixed.",
  },
  toneOfStates: {
    ...{ QUEUED: "good", MATCHED: "good", CANCELLED: "muted", EXPIRED: "muted", INVALID: "bad" },
    ...{ WAITING: "warn", DEAD: "bad", GONE: "muted" },
  },
  more: [{ path: matchmakingPath, title: "Matchmaking", page: matchmakingPage }],
};

function stagesOf(status: MatchmakingStatus | undefined, rates: Samples<Counter>): Stage[] {
  return [
    ticketsStage(status, rates),
    flowStage(rates, {
      title: "Matches",
      about: "Pairs users who wait in the same mode.",
      counter: "matches",
      unit: "matches/s",
      trouble: late(status) > pairingLateSeconds ? "standing still" : undefined,
      facts: [["mean time to match", age(status?.replica.mean_seconds_to_match ?? null)]],
    }),
    queueStage(outboxQueue, status),
    flowStage(rates, {
      title: "Relay",
      about: "Publishes one event for each user.",
      counter: "done",
      unit: "events/s",
      trouble: status?.nats === false ? "NATS down" : undefined,
      facts: [["retries", perSecond(rates.rate("retried"))]],
    }),
  ];
}

function ticketsStage(
  status: MatchmakingStatus | undefined,
  rates: Samples<Counter>,
): Stage {
  const waiting = status?.modes.reduce((sum, { tickets }) => sum + tickets, 0);
  const oldest = status && Math.max(0, ...status.modes.map((mode) => mode.oldest_seconds ?? 0));
  return {
    title: "Tickets",
    about: "Users who wait for somebody to play with.",
    state: waiting === undefined
      ? { tone: "muted", word: "unknown" }
      : { tone: "good", word: waiting > 0 ? "waiting" : "empty" },
    facts: [
      ["waiting", waiting === undefined ? "–" : whole(waiting)],
      ["oldest", waiting ? age(oldest ?? null) : "–"],
      ["expired", perSecond(rates.rate("expired"))],
      ["cancelled", perSecond(rates.rate("cancelled"))],
      ["invalid", perSecond(rates.rate("invalid"))],
    ],
  };
}

function late(status: MatchmakingStatus | undefined): number {
  return Math.max(0, ...status?.modes.map((mode) => mode.pairable_seconds ?? 0) ?? []);
}
