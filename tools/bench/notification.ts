// The notification service alone, from a stream that is full to SENT.
// The limit is what a service at least has to do in the database.
import { makeDatabase } from "../servers/databases.ts";
import { connectTo } from "../servers/nats_client.ts";
import { withClient } from "../servers/asking.ts";
import { startService } from "../servers/service_process.ts";
import { openDatabase, query } from "../../shared/postgres/postgres.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { settingsOf, untilSent } from "./both.ts";
import { expectRows, hasRow } from "./database.ts";
import { makeStream, payloadOf, publishEvents } from "./receive.ts";
import { withUse } from "./usage.ts";
import { type Bench, type Sample, timed, type Work } from "./work.ts";

const batchSize = 500;

export async function startNotification({ servers, quick }: Bench): Promise<Work> {
  const events = quick ? 50_000 : 200_000;
  const database = await makeDatabase(servers.postgres, "notification", "bench_notification");
  const limitDatabase = await makeDatabase(
    servers.postgres,
    "notification",
    "bench_two_statements",
  );
  const connection = await connectTo(servers.nats.url);
  const stream = await makeStream(connection, "notification");
  const manager = await connection.jetstreamManager();
  await publishEvents(connection, stream.subjects[0], events);
  await forget(database);
  const durable = "notifications";
  const service = await startService("notification", {
    ...settingsOf("notification", servers, database, "notification"),
    NOTIFICATION_NATS_DURABLE: durable,
    NOTIFICATION_RETENTION_ENABLED: "false",
  });
  const pids = {
    PostgreSQL: servers.postgres.pid,
    "nats-server": servers.nats.pid,
    notification: service.pid,
  };
  await untilSent(database, events);

  // The service makes its consumer again, which begins with the first message.
  async function receiveAgain(): Promise<Sample> {
    await forget(database);
    await manager.consumers.delete(stream.name, durable);
    const receiving = withClient(database.ownerUrl, async (owner) => {
      while (!await hasRow(owner, "notifications")) {
        await new Promise((again) => setTimeout(again, 2));
      }
    });
    const { result: perSecond, use } = await withUse(pids, events, async () => {
      await receiving;
      return await timed(events, () => untilSent(database, events));
    });
    await assertSent(database, events);
    return { perSecond, figures: use };
  }

  return {
    unit: "notifications/s",
    atMost: { "PostgreSQL µs": 40, "notification µs": 38 },
    measure: receiveAgain,
    limits: [{
      name: "insert and settle",
      what: `two bare statements for ${batchSize} events, one after the other on one connection`,
      target: 0.5,
      measure: () => runStatements(limitDatabase, events),
    }],
    [Symbol.asyncDispose]: async () => {
      await service.stop();
      await connection.close();
    },
  };
}

async function forget({ ownerUrl }: DatabaseUrls): Promise<void> {
  await withClient(ownerUrl, (owner) => owner.query("truncate notifications, processed_events"));
}

const insertReceived = `
  with received as materialized (
    select (payload->>'event_id')::uuid as id, payload
    from jsonb_array_elements($1::jsonb) as payload
  ), processed as (
    insert into processed_events (event_id) select id from received
  )
  insert into notifications
    (notification_id, event_id, user_id, aggregate_key, version, type, occurred_at, payload_json)
  select id, id, payload->>'user_id', payload->>'user_id' || ':book', (payload->>'version')::bigint,
    payload->>'event_type', (payload->>'occurred_at')::timestamptz, payload
  from received`;

const settleSent = `
  update notifications set status = 'SENT', sent_at = now() where notification_id = any($1::uuid[])`;

async function runStatements(database: DatabaseUrls, events: number): Promise<number> {
  await forget(database);
  const batches = Array.from({ length: events / batchSize }, (_, batch) => {
    const payloads = Array.from({ length: batchSize }, (_, i) => payloadOf(batch * batchSize + i));
    return { text: JSON.stringify(payloads), ids: payloads.map(({ event_id }) => event_id) };
  });
  const pool = openDatabase(database.serviceUrl, "bench");
  const perSecond = await timed(events, async () => {
    for (const { text, ids } of batches) {
      await query(pool, insertReceived, [text]);
      await query(pool, settleSent, [ids]);
    }
  });
  await pool.end();
  await assertSent(database, events);
  return perSecond;
}

function assertSent(database: DatabaseUrls, events: number): Promise<void> {
  return expectRows(
    database,
    events,
    "notifications join processed_events using (event_id) where status = 'SENT'",
  );
}
