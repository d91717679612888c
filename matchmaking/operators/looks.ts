import type { Figures, Looks, QueueLooks } from "@kenri/shared/operators/looks.ts";
import { age } from "@kenri/shared/ops/text.ts";
import { findOne, matchmaking } from "./commands.ts";
import type { MatchmakingStatus } from "./status.ts";

// What operators see of this service. Tickets that wait are users who wait, so they are no queue:
// nothing is late while there is nobody to play with.

export const timelineBy = ["event_id", "user_id"] as const;

export const outboxQueue: QueueLooks<MatchmakingStatus> = {
  title: "Outbox",
  noun: "match event",
  until: "to be published",
  command: "matchmaking late",
  layers: ["matchmaking"],
  lateSeconds: 5,
  waitsForNats: true,
  of: (status) => status,
};

export const pairingLateSeconds = 10;

export const looks: Looks<MatchmakingStatus> = {
  status: {
    queues: [outboxQueue],
    figures: ({ modes, redis }) => ({
      ...Object.fromEntries(modes.map((mode): [string, Figures[string]] => [
        `tickets waiting (${mode.mode})`,
        mode.tickets === 0 ? 0 : `${mode.tickets}, the oldest for ${age(mode.oldest_seconds)}`,
      ])),
      "Redis": redis.version ?? "of unknown version",
    }),
    problems: ({ modes, redis }) => [
      ...modes.filter(({ pairable_seconds }) => (pairable_seconds ?? 0) > pairingLateSeconds)
        .map(({ mode, pairable_seconds }) =>
          `two users have waited ${
            age(pairable_seconds)
          } for each other in ${mode}: ops matchmaking`
        ),
      ...(redis.append_only ? [] : [redis.can_lose ?? ""]),
    ],
  },
  timeline: { title: "matchmaking", by: timelineBy },
  deadLetters: { matchmaking: "Events of matches and tickets that could not be published." },
  // Before the services that receive its events.
  erasesUsers: "first",
  logsOperations: true,
  commands: { "matchmaking": matchmaking, "matchmaking ticket": findOne },
};
