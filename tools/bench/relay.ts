// The relay of the real service publishes waiting events: from the table to the stream to PUBLISHED.
import { headers, type NatsConnection } from "nats";
import { outbox } from "../../entitlement/outbox.ts";
import { eventTypes } from "../../entitlement/publish_events.ts";
import { type EventMessage, type EventType, toMessage } from "../../shared/outbox/event_types.ts";
import { ensureStream } from "../../shared/nats/streams.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { connectTo } from "../servers/nats_client.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { makeDatabase } from "../servers/databases.ts";
import {
  assertPublished,
  assertStored,
  batchSize,
  seed,
  startRelayDrain,
  storedIn,
} from "./relay_drain.ts";
import { type Bench, shared, timed, type Work } from "./work.ts";
import { withClient } from "../servers/asking.ts";

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
  const before = await storedIn(manager, name);
  const messages = await messagesOf(database, events, subject);
  const jetstream = connection.jetstream();
  const perSecond = await timed(events, () =>
    shared(events, 200, (i) => {
      const { id, subject, headers: given = {}, body } = messages[i] as EventMessage;
      const sent = headers();
      for (const [name, value] of Object.entries(given)) sent.set(name, value);
      return jetstream.publish(subject, body, { msgID: id, headers: sent });
    }));
  assertStored(await storedIn(manager, name) - before, events);
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
  const types = eventTypes({ subjects: [subject, `${subject}.points`] }, undefined);
  const type = types.get("EntitlementGranted") as EventType;
  return rows.map((row) => toMessage(row, type));
}

const lease = { worker: "bench", leaseMs: 60_000 };

/** Like the worker, it claims the next batch while one is being settled. */
async function settleAlone(database: DatabaseUrls, events: number): Promise<number> {
  await withClient(database.ownerUrl, (owner) => seed(owner, events));
  const pool = openDatabase(database.serviceUrl, "bench");
  const perSecond = await timed(events, async () => {
    let settling: Promise<unknown> = Promise.resolve();
    const claim = outbox.claimRepeatedly(pool, { ...lease, batchSize, pollIntervalMs: 1_000 });
    for (;;) {
      const { rows } = await claim(batchSize);
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
