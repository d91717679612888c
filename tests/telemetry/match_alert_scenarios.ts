// Changes of the figures of matchmaking, and the alerts that each has to raise.
import {
  always,
  ended,
  figures,
  from,
  matchmaking,
  pairings,
  perSecond,
  type Scenario,
} from "./alert_figures.ts";

const redisUp = `kenri_redis_up{${matchmaking}}`;
const failed = `kenri_redis_errors_total{${matchmaking}}`;
const connected = `kenri_nats_connected{${matchmaking}}`;
const eventsAge = `mm_events_age_seconds{${matchmaking}}`;
const eventsWaiting = `mm_events_waiting{${matchmaking}}`;
const pairableIn = (mode: string) => `mm_pairable_age_seconds{${matchmaking},mode="${mode}"}`;
const claims = (le: string, inTime: number) =>
  figures("kenri_worker_phase_seconds", `${matchmaking},phase="claim"`, le, 10, inTime);

export const matchScenarios: Record<string, Scenario> = {
  "no replica of matchmaking": {
    fires: ["MatchmakingDown"],
    but: { [`up{${matchmaking}}`]: from(48, 1, 0) },
  },
  "users are not matched here": {
    fires: [],
    but: {
      ...{ [`up{${matchmaking}}`]: "", [redisUp]: "", [connected]: "", [eventsAge]: "" },
      ...{ [ended("matched")]: "", [pairableIn("casual")]: "", [pairableIn("rank")]: "" },
    },
  },
  "Redis is unavailable": {
    fires: ["RedisAway"],
    but: { [redisUp]: from(45, 1, 0), [failed]: perSecond(5) },
  },
  "Redis takes a second for each script": {
    fires: ["RedisSlow"],
    but: { ...claims("0.1", 1), ...claims("1", 10), ...claims("+Inf", 10) },
  },
  "calls of Redis fail again and again": { fires: ["RedisSlow"], but: { [failed]: perSecond(1) } },
  "calls of Redis failed once": { fires: [], but: { [failed]: from(45, 0, 2) } },
  "Redis has no append-only file": {
    fires: ["RedisWithoutFile"],
    but: { [`kenri_redis_append_only{${matchmaking}}`]: always(0) },
  },
  "events of matches wait": {
    fires: ["MatchesNotPublished"],
    but: { [eventsAge]: from(40, 0, 90), [eventsWaiting]: from(40, 0, 500) },
  },
  "events of matches wait for NATS": {
    fires: ["NatsAway"],
    but: { [eventsAge]: from(40, 0, 90), [connected]: from(40, 1, 0) },
  },
  "events of matches have waited for NATS for hours": {
    fires: ["NatsAway", "MatchEventsPileUp"],
    but: {
      [eventsAge]: from(10, 0, 9_000),
      [eventsWaiting]: from(10, 0, 200_000),
      [connected]: from(10, 1, 0),
    },
  },
  "two users wait for each other in one mode": {
    fires: ["PairingStandsStill"],
    but: { [pairableIn("rank")]: from(45, 0, 20) },
  },
  "one match of five comes late": {
    fires: ["MatchesLate", "MatchesLateSlowly"],
    but: pairings("1", 10, 8),
  },
  "one match of fifty comes late": { fires: ["MatchesLateSlowly"], but: pairings("1", 50, 49) },
  "one match of a thousand comes late": { fires: [], but: pairings("1", 1_000, 999) },
  "a ticket is broken": {
    fires: ["TicketsInvalid"],
    but: { [ended("invalid")]: from(45, 3, 4) },
  },
  "an event of a match could not be published": {
    fires: ["DeadMatchEvents"],
    but: { [`mm_events_dead_current{${matchmaking}}`]: from(45, 0, 1) },
  },
};
