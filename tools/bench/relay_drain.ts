// A backlog of events, and the relays of real services that publish it: from the table to the stream to
// PUBLISHED.
import type pg from "pg";
import type { JetStreamManager } from "nats";
import type { Servers } from "../servers/servers.ts";
import { type ServiceProcess, startService } from "../servers/service_process.ts";
import { withClient } from "../servers/asking.ts";
import { makeDatabase } from "../servers/databases.ts";
import { connectTo } from "../servers/nats_client.ts";
import { until } from "../servers/wait.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { settingsOf } from "./both.ts";
import { expectRows, hasRow, uuidOfRow } from "./database.ts";
import { withUse } from "./usage.ts";
import { type Bench, type Drain, type DrainOptions, itemsOfDrain, timed } from "./work.ts";

export interface RelayDrain extends Drain {
  /** The processor time per event of the last run, in µs; of the services that of the first. */
  use(): Record<string, number>;
}

export async function startRelayDrain(
  bench: Bench,
  options: DrainOptions,
): Promise<RelayDrain> {
  const { name, finished = 0, replicas = 1, items = itemsOfDrain(bench), wiped = false } = options;
  const { batchSize, pollInterval = "10ms" } = options; // only until the relay has found the first events
  const { servers } = bench;
  const database = await makeDatabase(servers.postgres, "entitlement", `bench_${name}`);
  await withClient(database.ownerUrl, (owner) => addFinished(owner, finished));
  const connection = await connectTo(servers.nats.url);
  const manager = await connection.jetstreamManager();
  const stream = `bench-${name}`;
  const settings = {
    ...settingsOf("entitlement", servers, database, name),
    ...(batchSize ? { ENTITLEMENT_OUTBOX_BATCH_SIZE: `${batchSize}` } : {}),
    ENTITLEMENT_OUTBOX_POLL_INTERVAL: pollInterval,
    ENTITLEMENT_RETENTION_ENABLED: "false",
  };
  const start = () =>
    Promise.all(Array.from({ length: replicas }, () => startService("entitlement", settings)));
  let services = await start();
  const stop = () => Promise.all(services.map((service) => service.stop()));
  let published = 0;
  let lastUse: Record<string, number> = {};

  async function drainSeeded(owner: pg.Client, keys: number): Promise<number> {
    await seed(owner, items, { keys, keepOthers: finished > 0 });
    const drain = () => timed(items, () => drained(owner));
    const { result, use } = await withUse(pidsOf(servers, services), items, drain);
    lastUse = use;
    return result;
  }

  // The stream is deleted while no relay runs; so the first thing that a relay does is to find out
  // and to put all events back.
  async function drainLost(owner: pg.Client, keys: number): Promise<number> {
    await until("the stream has a generation", () => hasRow(owner, "stream_generations"));
    await stop();
    await seed(owner, items, { keys, published: true });
    await manager.streams.delete(stream);
    services = await start();
    await until("the lost events are put back", () => hasRow(owner, isWaiting));
    return await timed(items, () => drained(owner));
  }

  return {
    database,
    items,
    use: () => lastUse,
    run: async (keys = items) => {
      const stored = wiped ? 0 : await storedIn(manager, stream);
      const perSecond = await withClient(
        database.ownerUrl,
        (owner) => wiped ? drainLost(owner, keys) : drainSeeded(owner, keys),
      );
      published = finished > 0 ? published + items : items;
      await assertPublished(database, published);
      assertStored(await storedIn(manager, stream) - stored, items);
      if (keys < items) await assertInOrder(database);
      return perSecond;
    },
    [Symbol.asyncDispose]: async () => {
      await stop();
      await connection.close();
    },
  };
}

function pidsOf({ postgres, nats }: Servers, [service]: ServiceProcess[]): Record<string, number> {
  const pids = { PostgreSQL: postgres.pid, "nats-server": nats.pid };
  return service ? { ...pids, entitlement: service.pid } : pids;
}

interface Seed {
  keys?: number; // the number of users who share the events; absent: each event has its own
  keepOthers?: boolean;
  published?: boolean; // in the stream as it is now
}

/** New events as the service writes them; the relay sees them all at once. */
export async function seed(
  owner: pg.Client,
  events: number,
  { keys = events, keepOthers = false, published = false }: Seed = {},
): Promise<void> {
  await owner.query("begin");
  if (!keepOthers) await owner.query("truncate outbox_events, outbox_attempts");
  await owner.query(insertEvents("now()", "user-", published), [events, keys]);
  if (!keepOthers) await owner.query("analyze outbox_events");
  await owner.query("commit");
}

/** Events of yesterday, which were published long ago. */
async function addFinished(owner: pg.Client, events: number): Promise<void> {
  if (events === 0) return;
  await owner.query(insertEvents("now() - interval '1 day'", "other-", true), [events, events]);
  await owner.query("vacuum analyze outbox_events");
}

function insertEvents(at: string, prefix: "user-" | "other-", published: boolean): string {
  const generation = prefix === "other-" ? "0" : "(select max(generation) from stream_generations)";
  return `
    insert into outbox_events
      (event_id, event_type, aggregate_key, payload, traceparent, created_at,
       status, published_at, stream_generation, stream_seq)
    select event_id, 'EntitlementGranted', user_id || ':premium',
      jsonb_build_object(
        'event_id', event_id, 'event_type', 'EntitlementGranted',
        'occurred_at', to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'user_id', user_id, 'stock_keeping_unit', 'premium', 'source', 'purchase',
        'source_id', 'purchase-' || number, 'version', version, 'trace_id', md5(user_id)),
      '00-' || md5(user_id) || '-00f067aa0ba902b7-01', at, ${
    published
      ? `'PUBLISHED', at + interval '5 ms', ${generation}, number`
      : "'PENDING', null, null, null"
  }
    from (
      select number, ${uuidOfRow(at)} as event_id, '${prefix}' || number % $2::int as user_id,
        (number - 1) / $2::int + 1 as version, ${at} + number * interval '1 microsecond' as at
      from generate_series(1, $1::int) as number
    ) as event`;
}

const isWaiting = "outbox_events where unfinished";

async function drained(owner: pg.Client): Promise<void> {
  await owner.query("set enable_seqscan = off"); // among many finished rows by the index, as the service
  while (await hasRow(owner, isWaiting)) await new Promise((again) => setTimeout(again, 10));
}

export function assertPublished(database: DatabaseUrls, events: number): Promise<void> {
  return expectRows(
    database,
    events,
    "outbox_events where status = 'PUBLISHED' and attempt_count = 0 and stream_generation > 0",
  );
}

/** The stream has the events of each key in the order of their versions. */
function assertInOrder(database: DatabaseUrls): Promise<void> {
  return expectRows(
    database,
    0,
    `(select stream_seq < lag(stream_seq) over by_version as is_early
      from outbox_events
      window by_version as (partition by aggregate_key order by (payload->>'version')::int)
     ) as event where is_early`,
  );
}

export function assertStored(messages: number, events: number): void {
  if (messages !== events) throw new Error(`The stream stored ${messages} of ${events} messages`);
}

export async function storedIn(manager: JetStreamManager, stream: string): Promise<number> {
  const info = await manager.streams.info(stream).catch(() => undefined);
  return info?.state.last_seq ?? 0;
}
