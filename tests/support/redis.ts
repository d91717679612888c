// Redis for tests: the server that KENRI_TEST_REDIS_URL names or, without it, a new one.
import { type RedisOptions, type RedisServer, startRedis } from "../../tools/servers/redis.ts";
import { redisCommand } from "../../tools/servers/redis_client.ts";

export { redisCommand };

/** The URL of the server, without a logical database. */
export const redisUrl = Deno.env.get("KENRI_TEST_REDIS_URL") ?? await startForAll();

async function startForAll(): Promise<string> {
  const server = await startRedis();
  Deno.test.afterAll(() => server.close());
  return server.url;
}

/** A server of its own, to be killed, stalled, wiped or configured. */
export function ownRedis(options: RedisOptions = {}): Promise<RedisServer> {
  return startRedis(options);
}

export interface FreshRedis extends AsyncDisposable {
  url: string;
}

/**
 * An empty logical database that no other test uses. The numbers are given out in turn by database 0,
 * which tests leave alone. It is emptied before as well, because a test that was killed leaves its data.
 */
export async function freshRedis(): Promise<FreshRedis> {
  const [, databases] = await redisCommand(redisUrl, "CONFIG", "GET", "databases") as string[];
  const turn = Number(await redisCommand(redisUrl, "INCR", "kenri-test:databases"));
  const url = new URL(redisUrl);
  url.pathname = `/${1 + turn % (Number(databases) - 1)}`;
  const flush = async () => {
    await redisCommand(url.href, "FLUSHDB");
  };
  await flush();
  return { url: url.href, [Symbol.asyncDispose]: flush };
}
