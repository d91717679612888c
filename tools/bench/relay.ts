// The relay of the real service publishes waiting events: from the table to the stream to PUBLISHED.
import type pg from "pg";
import { headers, type NatsConnection } from "nats";
import { outbox } from "../../entitlement/outbox.ts";
import { eventTypes } from "../../entitlement/publish_events.ts";
import { type EventMessage, type EventType, toMessage } from "../../shared/outbox/event_types.ts";
import { ensureStream } from "../../shared/nats/streams.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { startService } from "../servers/service_process.ts";
import { connectTo } from "../servers/nats_client.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { makeDatabase } from "../servers/databases.ts";
import {
  type Bench,
  type Drain,
  type DrainOptions,
  itemsOfDrain,
  shared,
  timed,
  type Work,
} from "./work.ts";
import { settingsOf } from "./both.ts";
import { expectRows, uuidOfRow } from "./database.ts";
import { withClient } from "../servers/asking.ts";

const batchSize = 200; // the service's own default

export async function startRelay(bench: Bench): Promise<Work> {
  const { servers } = bench;
  const relay = await startRelayDrain(bench, { name: "relay" });
  const limitDatabase = await makeDatabase(servers.postgres, "entitlement", "bench_relay_limit");
  const connection = await connectTo(servers.nats.url);
  return {
    unit: "events/s",
    atMost: {},
    measure: async () => ({ perSecond: await relay.run(), figures: {} }),
    limits: [
      {
        name: "js.publish",
        what: "of the same messages, 200 in flight, no database",
        target: 1.5,
        measure: () => publishAlone(connection, limitDatabase, relay.items),
      },
      {
        name: "claim and settle",
        what: `the statements alone, in batches of ${batchSize}`,
        target: 0.55,
        measure: () => settleAlone(limitDatabase, relay.items),
      },
    ],
    [Symbol.asyncDispose]: async () => {
      await relay[Symbol.asyncDispose]();
      await connection.close();
    },
  };
}

/** The relays of real services, from the table to the stream to `PUBLISHED`. */
export async function startRelayDrain(
  bench: Bench,
  { name, finished = 0, replicas = 1 }: DrainOptions,
): Promise<Drain> {
  const events = itemsOfDrain(bench);
  const { servers } = bench;
  const database = await makeDatabase(servers.postgres, "entitlement", `bench_${name}`);
  await withClient(database.ownerUrl, (owner) => addFinished(owner, finished));
  const connection = await connectTo(servers.nats.url);
  const stream = `bench-${name}`;
  const settings = {
    ...settingsOf("entitlement", servers, database, name),
    ENTITLEMENT_OUTBOX_BATCH_SIZE: `${batchSize}`,
    ENTITLEMENT_OUTBOX_POLL_INTERVAL: "10ms", // only until it has found the first events
    ENTITLEMENT_RETENTION_ENABLED: "false",
  };
  const services = await Promise.all(
    Array.from({ length: replicas }, () => startService("entitlement", settings)),
  );
  let published = 0;
  return {
    database,
    items: events,
    run: async () => {
      const stored = await storedIn(connection, stream);
      const perSecond = await withClient(database.ownerUrl, async (owner) => {
        await seed(owner, events, finished > 0);
        return await timed(events, () => drained(owner));
      });
      published = finished > 0 ? published + events : events;
      await assertPublished(database, published);
      assertStored(await storedIn(connection, stream) - stored, events);
      return perSecond;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(services.map((service) => service.stop()));
      await connection.close();
    },
  };
}

/** New events as the service writes them; the relay sees them all at once. */
export async function seed(owner: pg.Client, events: number, keepOthers = false): Promise<void> {
  await owner.query("begin");
  if (!keepOthers) await owner.query("truncate outbox_events");
  await owner.query(insertEvents("now()", "user-"), [events]);
  if (!keepOthers) await owner.query("analyze outbox_events");
  await owner.query("commit");
}

/** Events of yesterday, which were published long ago. */
async function addFinished(owner: pg.Client, events: number): Promise<void> {
  if (events === 0) return;
  await owner.query(insertEvents("now() - interval '1 day'", "other-"), [events]);
  await owner.query("vacuum analyze outbox_events");
}
// Those of other users are PUBLISHED.
function insertEvents(at: string, prefix: "user-" | "other-"): string {
  const finished = prefix === "other-";
  return `
    insert into outbox_events
      (event_id, event_type, aggregate_key, payload, traceparent, created_at,
       status, published_at, stream_generation, stream_seq)
    select event_id, 'EntitlementGranted', user_id || ':premium',
      jsonb_build_object(
        'event_id', event_id, 'event_type', 'EntitlementGranted',
        'occurred_at', to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'user_id', user_id, 'stock_keeping_unit', 'premium', 'source', 'purchase',
        'source_id', 'purchase-' || number, 'version', 1, 'trace_id', md5(user_id)),
      '00-' || md5(user_id) || '-00f067aa0ba902b7-01', at,
      ${finished ? "'PUBLISHED', at + interval '5 ms', 0, number" : "'PENDING', null, null, null"}
    from (
      select number, ${uuidOfRow(at)} as event_id, '${prefix}' || number as user_id,
        ${at} + number * interval '1 microsecond' as at
      from generate_series(1, $1::int) as number
    ) as event`;
}

async function drained(owner: pg.Client): Promise<void> {
  await owner.query("set enable_seqscan = off"); // among many finished rows by the index, as the service
  for (;;) {
    const { rows: [row] } = await owner.query<{ left: boolean }>(
      `select exists (select from outbox_events where unfinished) as left`,
    );
    if (!row?.left) return;
    await new Promise((again) => setTimeout(again, 10));
  }
}

function assertPublished(database: DatabaseUrls, events: number): Promise<void> {
  return expectRows(
    database,
    events,
    "outbox_events where status = 'PUBLISHED' and attempt_count = 0 and stream_generation > 0",
  );
}

function assertStored(messages: number, events: number): void {
  if (messages !== events) throw new Error(`The stream stored ${messages} of ${events} messages`);
}

async function storedIn(connection: NatsConnection, stream: string): Promise<number> {
  const manager = await connection.jetstreamManager();
  const info = await manager.streams.info(stream).catch(() => undefined);
  return info?.state.last_seq ?? 0;
}

async function publishAlone(
  connection: NatsConnection,
  database: DatabaseUrls,
  events: number,
): Promise<number> {
  const [name, subject] = ["bench-publish", "bench.publish"];
  const manager = await connection.jetstreamManager();
  await ensureStream(manager, {
    name,
    subjects: [subject],
    duplicateWindowMs: 120_000,
    replicas: 1,
  });
  const before = await storedIn(connection, name);
  const messages = await messagesOf(database, events, subject);
  const jetstream = connection.jetstream();
  const perSecond = await timed(events, () =>
    shared(events, 200, (i) => {
      const { id, subject, headers: given = {}, body } = messages[i] as EventMessage;
      const sent = headers();
      for (const [name, value] of Object.entries(given)) sent.set(name, value);
      return jetstream.publish(subject, body, { msgID: id, headers: sent });
    }));
  assertStored(await storedIn(connection, name) - before, events);
  return perSecond;
}

async function messagesOf(
  database: DatabaseUrls,
  events: number,
  subject: string,
): Promise<EventMessage[]> {
  await withClient(database.ownerUrl, (owner) => seed(owner, events));
  const pool = openDatabase(database.serviceUrl, "bench");
  const rows = await outbox.claim(pool, lease, events);
  await pool.end();
  const type = eventTypes(subject, undefined).get("EntitlementGranted") as EventType;
  return rows.map((row) => toMessage(row, type));
}

const lease = { worker: "bench", leaseMs: 60_000 };

/** Like the worker, it claims the next batch while one is being settled. */
async function settleAlone(database: DatabaseUrls, events: number): Promise<number> {
  await withClient(database.ownerUrl, (owner) => seed(owner, events));
  const pool = openDatabase(database.serviceUrl, "bench");
  const perSecond = await timed(events, async () => {
    let settling: Promise<unknown> = Promise.resolve();
    for (;;) {
      const rows = await outbox.claim(pool, lease, batchSize);
      await settling;
      if (rows.length === 0) return;
      const ackedAt = performance.now();
      settling = outbox.settle(
        pool,
        rows.map((row, sequence) => ({
          row,
          kind: "done",
          result: { generation: 1, sequence: sequence + 1, ackedAt },
        })),
      );
    }
  });
  await pool.end();
  await assertPublished(database, events);
  return perSecond;
}
