import { redisTime, timeOf } from "@kenri/shared/outbox/stream/stored_events.ts";
import type { Figure } from "@kenri/shared/telemetry/collected.ts";
import type { RedisLink } from "@kenri/shared/redis/redis_link.ts";
import { keysOf, queueOf } from "./keys.ts";
import {
  deadEvents,
  eventsAge,
  eventsWaiting,
  oldestAge,
  pairableAge,
  queueDepth,
} from "./metrics.ts";

// How many tickets wait in each mode, for how long, and what waits to be published.

export interface ModeFigures {
  mode: string;
  waiting: number;
  oldestMs: number; // how long the oldest ticket has waited; 0 if none waits
  // How long two users have waited who could be matched with each other; 0 if there are none.
  pairableMs: number;
  events: number;
  eventsOldestMs: number;
  dead: number;
}

export interface Queues {
  redis: RedisLink;
  modes: readonly string[];
  perUser: number; // tickets of one user that may wait in a mode
}

export async function readFigures({ redis, modes, perUser }: Queues): Promise<ModeFigures[]> {
  const now = await redisTime(redis);
  return await Promise.all(modes.map(async (mode) => {
    const { expiring, events, dead, buckets } = keysOf(mode);
    const [waiting, unpublished, dropped, first] = await Promise.all([
      redis.command(["ZCARD", expiring]),
      redis.command(["XLEN", events]),
      redis.command(["XLEN", dead]),
      redis.command(["XRANGE", events, "-", "+", "COUNT", "1"]),
    ]);
    const all = ["", ...await redis.command(["SMEMBERS", buckets]) as string[]];
    const heads = await Promise.all(
      all.map((bucket) => readHead(redis, mode, queueOf(mode, bucket), perUser)),
    );
    const since = (times: (number | undefined)[]) =>
      Math.max(0, ...times.map((at) => now - (at ?? now)));
    const [event] = first as [string][];
    return {
      mode,
      waiting: Number(waiting),
      oldestMs: since(heads.map(({ firstAt }) => firstAt)),
      pairableMs: since(heads.map(({ pairableAt }) => pairableAt)),
      events: Number(unpublished),
      eventsOldestMs: since([event && timeOf(event[0])]),
      dead: Number(dropped),
    };
  }));
}

interface Head {
  firstAt: number | undefined;
  pairableAt: number | undefined;
}

// The first tickets of a queue are of one user at most as often as a user may wait.
async function readHead(
  redis: RedisLink,
  mode: string,
  queue: string,
  perUser: number,
): Promise<Head> {
  const found = await redis.command(["ZRANGE", queue, "0", `${perUser}`, "WITHSCORES"]);
  const tickets = found as [string, number][];
  const firstAt = tickets[0]?.[1];
  if (tickets.length < 2) return { firstAt, pairableAt: undefined };
  const users = await Promise.all(
    tickets.map(([id]) => redis.command(["HGET", `${keysOf(mode).tickets}${id}`, "user_id"])),
  );
  const other = users.findIndex((user) => user !== null && user !== users[0]);
  return { firstAt, pairableAt: users[0] === null ? undefined : tickets[other]?.[1] };
}

export function toFigures(modes: ModeFigures[]): Figure[] {
  return [
    ...modes.flatMap(({ mode, waiting, oldestMs, pairableMs }) => [
      { gauge: queueDepth, labels: { mode }, value: waiting },
      { gauge: oldestAge, labels: { mode }, value: oldestMs / 1_000 },
      { gauge: pairableAge, labels: { mode }, value: pairableMs / 1_000 },
    ]),
    { gauge: eventsWaiting, value: modes.reduce((sum, { events }) => sum + events, 0) },
    { gauge: eventsAge, value: Math.max(...modes.map((mode) => mode.eventsOldestMs)) / 1_000 },
    { gauge: deadEvents, value: modes.reduce((sum, { dead }) => sum + dead, 0) },
  ];
}
