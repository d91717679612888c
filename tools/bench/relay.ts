// The relay of the real service publishes waiting events: from the table to the stream to PUBLISHED.
import type { NatsConnection } from "nats";
import { eventTypes } from "../../entitlement/publish_events.ts";
import { type EventRow, toMessage } from "../../shared/outbox/event_types.ts";
import { openPublisher } from "../../shared/outbox/publisher.ts";
import { openDatabase, query, transaction } from "../../shared/postgres/postgres.ts";
import { connectTo } from "../servers/nats_client.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { makeDatabase } from "../servers/databases.ts";
import { assertPublished, assertStored, seed, startRelayDrain, storedIn } from "./relay_drain.ts";
import { makeStream } from "./receive.ts";
import { type Bench, timed, type Work } from "./work.ts";
import { withClient } from "../servers/asking.ts";

export async function startRelay(bench: Bench): Promise<Work> {
  const { servers } = bench;
  const relay = await startRelayDrain(bench, { name: "relay", batchSize });
  const limitDatabase = await makeDatabase(servers.postgres, "entitlement", "bench_relay_limit");
  const connection = await connectTo(servers.nats.url);
  return {
    unit: "events/s",
    atMost: {},
    measure: async () => ({ perSecond: await relay.run(), figures: relay.use() }),
    limits: [{
      name: "a plain loop",
      what: `written by hand: two at once, batches of ${batchSize}; no order, no fence, no leases`,
      target: 0.6,
      measure: () => publishByHand(connection, limitDatabase, relay.items),
    }],
    [Symbol.asyncDispose]: async () => {
      await relay[Symbol.asyncDispose]();
      await connection.close();
    },
  };
}

const batchSize = 500;
const withoutLease = { token: "", attempts: 0, takenOver: false };
const loops = 2; // one publishes while the other one is in the database

// What a careful engineer writes first: the rows stay locked until the stream has them.
const takeWaiting = `
  select event_id as id, aggregate_key as key, event_type, payload, traceparent
  from outbox_events
  where unfinished
  order by created_at
  limit $1
  for update skip locked`;

const markPublished = `
  update outbox_events
  set status = 'PUBLISHED', published_at = now(), stream_generation = 1, stream_seq = sequence
  from unnest($1::uuid[], $2::bigint[]) as acked (id, sequence)
  where event_id = id`;

async function publishByHand(
  connection: NatsConnection,
  database: DatabaseUrls,
  events: number,
): Promise<number> {
  const { name, subjects } = await makeStream(connection, "relay-by-hand");
  const [subject] = subjects;
  const types = eventTypes({ subjects: [subject, `${subject}.points`] }, undefined);
  const manager = await connection.jetstreamManager();
  const before = await storedIn(manager, name);
  await withClient(database.ownerUrl, (owner) => seed(owner, events));
  const pool = openDatabase(database.serviceUrl, "bench");
  const publisher = openPublisher(connection, "bench");
  const publishBatch = () =>
    transaction(pool, async (tx) => {
      const rows = await query<EventRow["content"] & { id: string; key: string }>(
        tx,
        takeWaiting,
        [batchSize],
      );
      const acks = await Promise.all(rows.map(({ id, key, ...content }) => {
        const type = types.get(content.event_type);
        if (!type) throw new Error(`Nobody knows events of the type ${content.event_type}`);
        return publisher.publish(toMessage({ id, key, content, ...withoutLease }, type));
      }));
      const sequences = acks.map((ack) => ack.kind === "acked" ? ack.sequence : null);
      await query(tx, markPublished, [rows.map(({ id }) => id), sequences]);
      return rows.length;
    });
  const publishAll = async () => {
    while (await publishBatch() > 0);
  };
  const perSecond = await timed(
    events,
    () => Promise.all(Array.from({ length: loops }, publishAll)),
  );
  publisher.close();
  await pool.end();
  await assertPublished(database, events);
  assertStored(await storedIn(manager, name) - before, events);
  return perSecond;
}
