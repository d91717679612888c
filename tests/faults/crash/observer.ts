// Looks at the tables and the stream while a service dies and another one goes on. It keeps its
// connections, because it looks often.
import pg from "pg";
import { connectTo } from "../../../tools/servers/nats_client.ts";

/** A count of zero is left out. */
export type Counts = Record<string, number>;

export interface Observer extends AsyncDisposable {
  counts(): Promise<Counts>;
  /** Messages that the consumer has not acknowledged yet; undefined if it does not exist. */
  unacknowledged(): Promise<number | undefined>;
  /** The sessions of a killed process live on until their last statement ends. */
  sessionsOf(service: string): Promise<number>;
}

export interface Observed {
  databases: Record<string, { ownerUrl: string; counts: string }>; // a query of (what, count)
  natsUrl: string;
  stream: string;
  durable?: string; // absent where no consumer belongs to the system
}

export async function observe(observed: Observed): Promise<Observer> {
  const { databases, natsUrl, stream, durable } = observed;
  await using opened = new AsyncDisposableStack();
  const clients = new Map<string, pg.Client>();
  for (const [service, { ownerUrl }] of Object.entries(databases)) {
    const client = new pg.Client({ connectionString: ownerUrl });
    opened.defer(() => client.end());
    client.on("error", () => {});
    await client.connect();
    clients.set(service, client);
  }
  const nats = await connectTo(natsUrl, { reconnect: false });
  opened.defer(() => nats.close());
  const { streams, consumers } = await nats.jetstreamManager();
  const closing = opened.move();
  return {
    async counts() {
      const counted: Counted[] = [];
      for (const [service, client] of clients) {
        counted.push(...(await client.query<Counted>(databases[service]?.counts ?? "")).rows);
      }
      const { messages } = await streams.info(stream)
        .then(({ state }) => state, () => ({ messages: 0 }));
      counted.push({ what: "in the stream", count: messages });
      return Object.fromEntries(
        counted.filter(({ count }) => count > 0).map(({ what, count }) => [what, count]),
      );
    },
    unacknowledged() {
      if (durable === undefined) return Promise.resolve(0);
      return consumers.info(stream, durable).then(
        ({ num_pending, num_ack_pending }) => num_pending + num_ack_pending,
        () => undefined,
      );
    },
    async sessionsOf(service) {
      const sessions = await clients.get(service)?.query(
        `select from pg_stat_activity
         where datname = current_database() and application_name = $1`,
        [service],
      );
      return sessions?.rowCount ?? 0;
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

interface Counted {
  what: string;
  count: number;
}
