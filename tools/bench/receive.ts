// From the stream to stored notifications: the loop of the consumer. Delivery is off, because it has a
// line of its own.
import { getLogger } from "@logtape/logtape";
import type pg from "pg";
import { AckPolicy, type NatsConnection } from "nats";
import { encodeEvent } from "../../proto/entitlement/encode.ts";
import { eventInboxes } from "../../notification/consume_events.ts";
import { receive } from "../../shared/inbox/inbox.ts";
import { NatsLink } from "../../shared/nats/link.ts";
import { ensureStream, type WantedStream } from "../../shared/nats/streams.ts";
import { openPublisher } from "../../shared/outbox/publisher.ts";
import { openDatabase } from "../../shared/postgres/postgres.ts";
import { Handover } from "../../shared/queue/handover.ts";
import { uuidv7 } from "../../shared/process/uuid.ts";
import { connectTo } from "../servers/nats_client.ts";
import type { DatabaseUrls } from "../load/stage.ts";
import { makeDatabase } from "../servers/databases.ts";
import { addFinished } from "./deliver.ts";
import {
  type Bench,
  type Drain,
  type DrainOptions,
  itemsOfDrain,
  timed,
  type Work,
} from "./work.ts";
import { expectRows } from "./database.ts";
import { withClient } from "../servers/asking.ts";

export async function startReceive(bench: Bench): Promise<Work> {
  const connection = await connectTo(bench.servers.nats.url);
  const receiving = await startReceiveDrain(bench, { name: "receive" });
  let rounds = 0;
  return {
    unit: "messages/s",
    atMost: {},
    measure: async () => ({ perSecond: await receiving.run(), figures: {} }),
    limits: [{
      name: "consume and ack",
      what: "of the same messages, no database",
      target: 0.35,
      measure: () =>
        consumeAlone(connection, receiving.items, "bench-receive", `bench-consume-${++rounds}`),
    }],
    [Symbol.asyncDispose]: async () => {
      await receiving[Symbol.asyncDispose]();
      await connection.close();
    },
  };
}

/** Each run consumes the same messages again, into tables that don't contain them. */
export async function startReceiveDrain(
  bench: Bench,
  { name, finished = 0 }: DrainOptions,
): Promise<Drain> {
  const messages = itemsOfDrain(bench);
  const { servers } = bench;
  const database = await makeDatabase(servers.postgres, "notification", `bench_${name}`);
  await withClient(database.ownerUrl, (owner) => addFinished(owner, finished));
  const connection = await connectTo(servers.nats.url);
  const pool = openDatabase(database.serviceUrl, "bench");
  const log = getLogger("bench"); // not configured: writes nothing
  const stream = await makeStream(connection, name);
  await publishEvents(connection, stream.subjects[0], messages);
  let rounds = 0;
  return {
    database,
    items: messages,
    run: async () => {
      await withClient(database.ownerUrl, (owner) => forget(owner, finished > 0));
      const stop = new AbortController();
      const link = new NatsLink({ urls: servers.nats.url }, "bench", log);
      const parts = { log, abandon: stop.signal, link };
      const consumer = { durable: `bench-${++rounds}`, ackWaitMs: 30_000, maxDeliver: 10 };
      const streams = { stream, consumer, advisories: [] };
      const [inbox] = eventInboxes(
        { database: pool, toDelivery: new Handover() },
        {
          ...streams,
          points: streams,
          matchmaking: { ...streams, enabled: false },
          predecessorWaitMs: 30_000,
        },
      );
      let running: Promise<void> = Promise.resolve();
      const perSecond = await timed(messages, async () => {
        running = receive(parts, inbox, stop.signal);
        while (await acked(connection, stream.name, consumer.durable) < messages) {
          await new Promise((again) => setTimeout(again, 20));
        }
      });
      stop.abort();
      await running;
      await link.close();
      await assertStored(database, messages);
      return perSecond;
    },
    [Symbol.asyncDispose]: async () => {
      await pool.end();
      await connection.close();
    },
  };
}

async function forget(owner: pg.Client, keepOthers: boolean): Promise<void> {
  if (!keepOthers) return void await owner.query("truncate notifications, processed_events");
  await owner.query(
    `delete from processed_events
     where event_id in (select event_id from notifications where status = 'PENDING')`,
  );
  await owner.query("delete from notifications where status = 'PENDING'");
}

export async function makeStream(connection: NatsConnection, name: string): Promise<WantedStream> {
  const settings = { duplicateWindowMs: 120_000, replicas: 1 };
  const stream: WantedStream = {
    name: `bench-${name}`,
    subjects: [`bench.${name}`],
    ...settings,
  };
  await ensureStream(await connection.jetstreamManager(), stream);
  return stream;
}

/** Each is the first change of its user, as most are. */
export async function publishEvents(
  connection: NatsConnection,
  subject: string,
  events: number,
): Promise<void> {
  const publisher = openPublisher(connection, "bench");
  const results = await Promise.all(Array.from({ length: events }, (_, i) => {
    const payload = payloadOf(i);
    const id = payload.event_id;
    return publisher.publish({ id, subject, body: encodeEvent(id, payload) });
  }));
  publisher.close();
  const lost = results.filter(({ kind }) => kind !== "acked").length;
  if (lost > 0) throw new Error(`The stream did not store ${lost} of ${events} messages`);
}

/** The content of a new event. */
export function payloadOf(number: number): { event_id: string; [field: string]: unknown } {
  return {
    event_id: uuidv7(),
    event_type: "EntitlementGranted",
    occurred_at: "2026-01-02T03:04:05.678Z",
    user_id: `user-${number}`,
    stock_keeping_unit: "book",
    source: "purchase",
    source_id: `purchase-${number}`,
    version: 1,
    trace_id: "0af7651916cd43dd8448eb211c80319c",
  };
}

async function consumeAlone(
  connection: NatsConnection,
  messages: number,
  stream: string,
  durable: string,
): Promise<number> {
  const manager = await connection.jetstreamManager();
  await manager.consumers.add(stream, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 20_000,
  });
  const consumer = await connection.jetstream().consumers.get(stream, durable);
  let taken = 0;
  return await timed(messages, async () => {
    const incoming = await consumer.consume({
      max_messages: 2_000,
      callback: (message) => {
        message.ack();
        taken++;
      },
    });
    while (taken < messages) await new Promise((again) => setTimeout(again, 5));
    while (await acked(connection, stream, durable) < messages) {
      await new Promise((again) => setTimeout(again, 5));
    }
    void incoming.close();
  });
}

/** The sequence up to which all messages are acknowledged. */
async function acked(
  connection: NatsConnection,
  stream: string,
  durable: string,
): Promise<number> {
  const manager = await connection.jetstreamManager();
  const info = await manager.consumers.info(stream, durable).catch(() => undefined);
  return info?.ack_floor.stream_seq ?? 0;
}

function assertStored(database: DatabaseUrls, messages: number): Promise<void> {
  return expectRows(
    database,
    messages,
    "notifications join processed_events using (event_id) where status = 'PENDING'",
  );
}
