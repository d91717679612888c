// Looks at the tables and the stream while a service dies and another one goes on. It keeps its
// connections, because it looks often.
import pg from "pg";
import { connectTo } from "../../../tools/servers/nats_client.ts";
import type { BothPlaces } from "../../../tools/load/stage.ts";

/** A count of zero is left out. */
export type Counts = Record<string, number>;

export interface Observer extends AsyncDisposable {
  counts(): Promise<Counts>;
  /** Messages that the consumer has not acknowledged yet; undefined if no consumer exists. */
  unacknowledged(): Promise<number | undefined>;
  /** The sessions of a killed process live on until their last statement ends. */
  sessionsOf(service: string): Promise<number>;
}

export async function observe(place: BothPlaces): Promise<Observer> {
  const { owners, natsUrl, stream, settings } = place;
  const durable = settings["NOTIFICATION_NATS_DURABLE"] ?? "";
  const entitlement = await open(owners.entitlement);
  const notification = await open(owners.notification);
  const nats = await connectTo(natsUrl, { reconnect: false });
  const { streams, consumers } = await nats.jetstreamManager();
  return {
    async counts() {
      const counted = [
        ...(await entitlement.query<Counted>(ofEntitlement)).rows,
        ...(await notification.query<Counted>(ofNotification)).rows,
        {
          what: "in the stream",
          count: await streams.info(stream).then(({ state }) => state.messages, () => 0),
        },
      ];
      return Object.fromEntries(
        counted.filter(({ count }) => count > 0).map(({ what, count }) => [what, count]),
      );
    },
    unacknowledged() {
      return consumers.info(stream, durable).then(
        ({ num_pending, num_ack_pending }) => num_pending + num_ack_pending,
        () => undefined,
      );
    },
    async sessionsOf(service) {
      const own = service === "entitlement" ? entitlement : notification;
      const sessions = await own.query(
        `select from pg_stat_activity
         where datname = current_database() and application_name = $1`,
        [service],
      );
      return sessions.rowCount ?? 0;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([entitlement.end(), notification.end(), nats.close()]);
    },
  };
}

interface Counted {
  what: string;
  count: number;
}

const ofEntitlement = `
  select 'stored answers' as what, count(*)::int from idempotency_keys
  union all
  select 'audit', count(*)::int from entitlement_audit
  union all
  select 'outbox ' || status, count(*)::int from outbox_events group by status
  union all
  select 'outbox attempts', coalesce(sum(attempt_count), 0)::int from outbox_events`;

const ofNotification = `
  select 'processed' as what, count(*)::int from processed_events
  union all
  select 'notifications ' || status, count(*)::int from notifications group by status
  union all
  select 'notification attempts', coalesce(sum(attempt_count), 0)::int from notifications
  union all
  select 'dead letters', count(*)::int from notification_dlq
  union all
  select 'kept copies', count(*)::int from notification_nats_dlq`;

async function open(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return client;
}
