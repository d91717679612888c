import type { Figure } from "@kenri/shared/telemetry/collected.ts";
import type { RedisLink } from "@kenri/shared/redis/redis_link.ts";
import { keysOf, queueOf } from "./keys.ts";
import { eventsWaiting, oldestAge, queueDepth } from "./metrics.ts";

// How many tickets wait in each mode, for how long, and what waits to be published.

export interface ModeFigures {
  mode: string;
  waiting: number;
  oldestMs: number; // how long the oldest ticket has waited; 0 if none waits
  events: number;
  dead: number;
}

export async function readFigures(
  redis: RedisLink,
  modes: readonly string[],
): Promise<ModeFigures[]> {
  const [seconds] = await redis.command(["TIME"]) as [string];
  const now = Number(seconds) * 1_000;
  return await Promise.all(modes.map(async (mode) => {
    const { expiring, events, dead, buckets } = keysOf(mode);
    const [waiting, unpublished, dropped] = await Promise.all([
      redis.command(["ZCARD", expiring]),
      redis.command(["XLEN", events]),
      redis.command(["XLEN", dead]),
    ]);
    const all = ["", ...await redis.command(["SMEMBERS", buckets]) as string[]];
    const oldest = await Promise.all(
      all.map((bucket) => redis.command(["ZRANGE", queueOf(mode, bucket), "0", "0", "WITHSCORES"])),
    );
    const since = oldest.flatMap((found) => (found as [string, number][]).map(([, at]) => at));
    return {
      mode,
      waiting: Number(waiting),
      oldestMs: Math.max(0, now - Math.min(now, ...since)),
      events: Number(unpublished),
      dead: Number(dropped),
    };
  }));
}

export function toFigures(modes: ModeFigures[]): Figure[] {
  return [
    ...modes.flatMap(({ mode, waiting, oldestMs }) => [
      { gauge: queueDepth, labels: { mode }, value: waiting },
      { gauge: oldestAge, labels: { mode }, value: oldestMs / 1_000 },
    ]),
    { gauge: eventsWaiting, value: modes.reduce((sum, { events }) => sum + events, 0) },
  ];
}
