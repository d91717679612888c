import { type NatsServer, startNats } from "./nats.ts";
import { type PostgresServer, startPostgres } from "./postgres.ts";
import { type RedisServer, startRedis } from "./redis.ts";

export interface ServersOptions {
  /** Keeps the data of all from run to run. Absent: all are temporary. */
  dataDir?: string;
  postgresPort?: number;
  natsPort?: number;
  redisPort?: number;
  /** That of PostgreSQL's administrator, and of the only users of NATS and Redis. Absent: random ones. */
  password?: string;
  postgresSettings?: Record<string, string>;
  say?: (line: string) => void;
}

export interface Servers extends AsyncDisposable {
  postgres: PostgresServer;
  nats: NatsServer;
  redis: RedisServer;
  /** Ends all for good and removes what was temporary. */
  stop(): Promise<void>;
}

/** A real PostgreSQL, a real nats-server with JetStream and a real Redis, for as long as this process lives. */
export async function startServers(options: ServersOptions = {}): Promise<Servers> {
  const { dataDir, say = () => {} } = options;
  const [postgres, nats, redis] = await allOrNone([
    timed(
      startPostgres({
        ...(dataDir && { dataDir: `${dataDir}/postgres` }),
        ...(options.password && { password: options.password }),
        ...(options.postgresPort && { port: options.postgresPort }),
        ...(options.postgresSettings && { settings: options.postgresSettings }),
        say,
      }),
      say,
    ),
    timed(
      startNats({
        ...(dataDir && { storeDir: `${dataDir}/nats` }),
        ...(options.password && { password: options.password }),
        ...(options.natsPort && { port: options.natsPort }),
        say,
      }),
      say,
    ),
    timed(
      startRedis({
        ...(dataDir && { dataDir: `${dataDir}/redis` }),
        ...(options.password && { password: options.password }),
        ...(options.redisPort && { port: options.redisPort }),
        say,
      }),
      say,
    ),
  ]);
  const stop = async () => {
    await Promise.all([postgres.close(), nats.close(), redis.close()]);
  };
  return { postgres, nats, redis, stop, [Symbol.asyncDispose]: stop };
}

async function timed<S extends { address: string }>(
  starting: Promise<S>,
  say: (line: string) => void,
): Promise<S> {
  const from = performance.now();
  const server = await starting;
  say(`${server.address} is ready after ${Math.round(performance.now() - from)} ms`);
  return server;
}

/** If one doesn't start, the others are closed. */
async function allOrNone<Servers extends AsyncDisposable[]>(
  starting: { [At in keyof Servers]: Promise<Servers[At]> },
): Promise<Servers> {
  try {
    return await Promise.all(starting) as Servers;
  } catch (error) {
    for (const result of await Promise.allSettled(starting)) {
      if (result.status === "fulfilled") await result.value[Symbol.asyncDispose]();
    }
    throw error;
  }
}
