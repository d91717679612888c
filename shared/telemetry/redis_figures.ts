import { readDurability } from "../redis/durability.ts";
import type { RedisLink } from "../redis/redis_link.ts";
import { cached, collectedGauge, type Figure } from "./collected.ts";
import { onScrape } from "./scrape.ts";

const redisUp = collectedGauge(
  "kenri_redis_up",
  "1 when Redis answered the last scrape, 0 when it did not",
);
const appendOnly = collectedGauge(
  "kenri_redis_append_only",
  "1 when Redis keeps an append-only file, 0 when its data is gone when it ends",
);

export function collectFromRedis(redis: RedisLink, ask: () => Promise<Figure[]>): void {
  const askAll = async () => {
    const [durability, figures] = await Promise.all([
      readDurability((args) => redis.command(args)),
      ask(),
    ]);
    return [...figures, { gauge: appendOnly, value: durability.append_only ? 1 : 0 }];
  };
  onScrape(cached(askAll, (answered) => redisUp.set(answered ? 1 : 0)));
}
