import { type NatsServer, startNats } from "./nats.ts";
import { type PostgresServer, startPostgres } from "./postgres.ts";

export interface ServersOptions {
  /** Keeps the data of both from run to run. Absent: both are temporary. */
  dataDir?: string;
  postgresPort?: number;
  natsPort?: number;
  /** The password of PostgreSQL's administrator and of NATS' only user. Absent: random ones. */
  password?: string;
  postgresSettings?: Record<string, string>;
  say?: (line: string) => void;
}

export interface Servers extends AsyncDisposable {
  postgres: PostgresServer;
  nats: NatsServer;
  /** Ends both for good and removes what was temporary. */
  stop(): Promise<void>;
}

/** A real PostgreSQL and a real nats-server with JetStream, for as long as this process lives. */
export async function startServers(options: ServersOptions = {}): Promise<Servers> {
  const { dataDir, say = () => {} } = options;
  const [postgres, nats] = await bothOrNone(
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
  );
  const stop = async () => {
    await Promise.all([postgres.close(), nats.close()]);
  };
  return { postgres, nats, stop, [Symbol.asyncDispose]: stop };
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

/** If one doesn't start, the other is closed. */
async function bothOrNone<A extends AsyncDisposable, B extends AsyncDisposable>(
  first: Promise<A>,
  second: Promise<B>,
): Promise<[A, B]> {
  try {
    return await Promise.all([first, second]);
  } catch (error) {
    const started = await Promise.allSettled([first, second]);
    for (const result of started) {
      if (result.status === "fulfilled") await result.value[Symbol.asyncDispose]();
    }
    throw error;
  }
}
