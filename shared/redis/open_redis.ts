import type { Log } from "../process/log.ts";
import type { Loop } from "../process/loop.ts";
import type { Service } from "../process/program.ts";
import type { Part } from "../process/service_parts.ts";
import type { RedisConfig } from "../process/service_settings.ts";
import { type MakeChange, makesChanges, makesConfirmedChanges } from "./confirmed.ts";
import { RedisLink } from "./redis_link.ts";
import type { Script } from "./script.ts";

// A part of a service, like those of service_parts.ts. It has a file of its own, so that only services
// with a Redis load its client.

export interface RedisPart extends Part {
  redis: RedisLink;
  change: MakeChange; // confirmed to be on the disk of the server, if a setting wants that
  loops: Loop[];
}

/** `confirmedBy` is the setting that wants changes to be confirmed. */
export function openRedis(
  { name }: Service,
  { redis: server }: RedisConfig,
  log: Log,
  { scripts, confirmedBy }: { scripts: Script[]; confirmedBy: string | undefined },
): RedisPart {
  const redis = new RedisLink({ ...server, name, scripts }, log);
  // A confirmation holds up all that is sent after it, so confirmed changes have their own connection.
  const confirming = confirmedBy === undefined
    ? undefined
    : new RedisLink({ ...server, name, scripts, confirmedBy }, log);
  const links = confirming ? [redis, confirming] : [redis];
  return {
    redis,
    change: confirming ? makesConfirmedChanges(confirming) : makesChanges(redis),
    loops: links.map((link, at) => ({
      name: at === 0 ? "redis" : "confirmed redis",
      run: (stop: AbortSignal) => link.run(stop),
    })),
    checks: { "Redis can't be reached": () => redis.answers() },
    close: async () => {
      for (const link of links) await link.close();
    },
  };
}
