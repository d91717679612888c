// The relay of the real service drains waiting events: from the table to the stream to PUBLISHED.
import type pg from "pg";
import { connect, headers, type NatsConnection } from "nats";
import { claimEvents, settleEvents } from "../../entitlement/outbox.ts";
import { type EventMessage, toMessage } from "../../entitlement/event.ts";
import { ensureStream } from "../../shared/jetstream.ts";
import { openDatabase } from "../../shared/postgres.ts";
import { startService } from "../../tests/services.ts";
import { asOwner, type BenchDatabase, countOf, makeDatabase, uuidOfRow } from "./database.ts";
import { type Bench, shared, timed, type Work } from "./work.ts";

const batchSize = 200; // the service's own default

export async function startRelay({ servers, quick }: Bench): Promise<Work> {
  const events = quick ? 20_000 : 100_000;
  const database = await makeDatabase(servers.postgres, "entitlement", "bench_relay");
  const limitDatabase = await makeDatabase(servers.postgres, "entitlement", "bench_relay_limit");
  const connection = await connect({ servers: servers.nats.url });
  const service = await startService("entitlement", {
    ENTITLEMENT_DATABASE_URL: database.serviceUrl,
    ENTITLEMENT_NATS_STREAM: "bench-relay",
    ENTITLEMENT_NATS_SUBJECT: "bench.relay",
    ENTITLEMENT_OUTBOX_BATCH_SIZE: `${batchSize}`,
    ENTITLEMENT_OUTBOX_POLL_INTERVAL: "10ms", // only until it has found the first events
    ENTITLEMENT_RETENTION_ENABLED: "false",
    NATS_URL: servers.nats.url,
  });
  return {
    unit: "events/s",
    atMost: {},
    measure: async () => {
      const stored = await storedIn(connection, "bench-relay");
      const perSecond = await asOwner(database, async (owner) => {
        await seed(owner, events);
        return await timed(events, () => drained(owner));
      });
      await assertPublished(database, events);
      assertStored(await storedIn(connection, "bench-relay") - stored, events);
      return { perSecond, figures: {} };
    },
    limits: [
      {
        name: "js.publish",
        what: "of the same messages, 200 in flight, no database",
        target: 1.5,
        measure: () => publishAlone(connection, limitDatabase, events),
      },
      {
        name: "claim and settle",
        what: `the statements alone, in batches of ${batchSize}`,
        target: 0.55,
        measure: () => settleAlone(limitDatabase, events),
      },
    ],
    [Symbol.asyncDispose]: async () => {
      await service.stop();
      await connection.close();
    },
  };
}

/** Fresh events as the service writes them, in place of all others, seen by the relay at once. */
export async function seed(owner: pg.Client, events: number): Promise<void> {
  await owner.query("begin");
  await owner.query("truncate outbox_events");
  await owner.query(
    `insert into outbox_events
       (event_id, event_type, aggregate_key, payload, traceparent, created_at)
     select event_id, 'EntitlementGranted', user_id || ':premium',
       jsonb_build_object(
         'event_id', event_id, 'event_type', 'EntitlementGranted',
         'occurred_at', to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
         'user_id', user_id, 'stock_keeping_unit', 'premium', 'source', 'purchase',
         'source_id', 'purchase-' || number, 'version', 1, 'trace_id', md5(user_id)),
       '00-' || md5(user_id) || '-00f067aa0ba902b7-01', at
     from (
       select number, ${uuidOfRow} as event_id, 'user-' || number as user_id,
         clock_timestamp() as at
       from generate_series(1, $1::int) as number
     ) as event`,
    [events],
  );
  await owner.query("analyze outbox_events");
  await owner.query("commit");
}

async function drained(owner: pg.Client): Promise<void> {
  for (;;) {
    const { rows: [row] } = await owner.query<{ left: boolean }>(
      `select exists (select from outbox_events where unfinished) as left`,
    );
    if (!row?.left) return;
    await new Promise((again) => setTimeout(again, 10));
  }
}

function assertPublished(database: BenchDatabase, events: number): Promise<void> {
  return asOwner(database, async (owner) => {
    const published = await countOf(
      owner,
      "outbox_events where status = 'PUBLISHED' and attempt_count = 0 and stream_seq > 0",
    );
    if (published !== events) throw new Error(`${published} of ${events} events are PUBLISHED`);
  });
}

function assertStored(messages: number, events: number): void {
  if (messages !== events) throw new Error(`The stream took ${messages} messages of ${events}`);
}

async function storedIn(connection: NatsConnection, stream: string): Promise<number> {
  const manager = await connection.jetstreamManager();
  const info = await manager.streams.info(stream).catch(() => undefined);
  return info?.state.last_seq ?? 0;
}

async function publishAlone(
  connection: NatsConnection,
  database: BenchDatabase,
  events: number,
): Promise<number> {
  const stream = { name: "bench-publish", subject: "bench.publish" };
  const manager = await connection.jetstreamManager();
  await ensureStream(manager, { ...stream, duplicateWindowMs: 120_000, replicas: 1 });
  const before = await storedIn(connection, stream.name);
  const messages = await messagesOf(database, events);
  const jetstream = connection.jetstream();
  const perSecond = await timed(events, () =>
    shared(events, 200, (i) => {
      const { id, headers: given, body } = messages[i] as EventMessage;
      const sent = headers();
      for (const [name, value] of Object.entries(given)) sent.set(name, value);
      return jetstream.publish(stream.subject, body, { msgID: id, headers: sent });
    }));
  assertStored(await storedIn(connection, stream.name) - before, events);
  return perSecond;
}

async function messagesOf(database: BenchDatabase, events: number): Promise<EventMessage[]> {
  await asOwner(database, (owner) => seed(owner, events));
  const pool = openDatabase(database.serviceUrl, "bench");
  const rows = await claimEvents(pool, lease, events);
  await pool.end();
  return rows.map(toMessage);
}

const lease = { worker: "bench", leaseMs: 60_000 };

/** As the worker does it: while one batch is being settled the next one is claimed. */
async function settleAlone(database: BenchDatabase, events: number): Promise<number> {
  await asOwner(database, (owner) => seed(owner, events));
  const pool = openDatabase(database.serviceUrl, "bench");
  const perSecond = await timed(events, async () => {
    let settling: Promise<unknown> = Promise.resolve();
    for (;;) {
      const rows = await claimEvents(pool, lease, batchSize);
      await settling;
      if (rows.length === 0) return;
      const ackedAt = performance.now();
      settling = settleEvents(
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
