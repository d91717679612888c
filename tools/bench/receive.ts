// From the stream to stored notifications: the consumer's own loop. Delivery is off, it has a line
// of its own.
import { getLogger } from "@logtape/logtape";
import { AckPolicy, connect, type NatsConnection } from "nats";
import { openPublisher } from "../../entitlement/publisher.ts";
import { consumeEvents } from "../../notification/consume_events.ts";
import { ensureStream, NatsLink } from "../../shared/jetstream.ts";
import { openDatabase } from "../../shared/postgres.ts";
import { Bell } from "../../shared/signals.ts";
import { bodyOf, eventOf } from "../../tests/events.ts";
import { asOwner, type BenchDatabase, countOf, makeDatabase } from "./database.ts";
import { type Bench, timed, type Work } from "./work.ts";

const stream = {
  name: "bench-receive",
  subject: "bench.receive",
  duplicateWindowMs: 120_000,
  replicas: 1,
};

export async function startReceive({ servers, quick }: Bench): Promise<Work> {
  const messages = quick ? 20_000 : 100_000;
  const database = await makeDatabase(servers.postgres, "notification", "bench_receive");
  const connection = await connect({ servers: servers.nats.url });
  const pool = openDatabase(database.serviceUrl, "bench");
  await (await connection.jetstreamManager()).streams.delete(stream.name).catch(() => {});
  await fill(connection, messages);
  let rounds = 0;
  return {
    unit: "messages/s",
    atMost: {},
    measure: async () => {
      await asOwner(database, (owner) => owner.query("truncate notifications, processed_events"));
      const log = getLogger("bench"); // not configured: writes nothing
      const stop = new AbortController();
      const link = new NatsLink(servers.nats.url, "bench", log);
      const parts = { database: pool, received: new Bell(), log, abandon: stop.signal, link };
      const consumer = { durable: `bench-receive-${++rounds}`, ackWaitMs: 30_000, maxDeliver: 10 };
      let running: Promise<void> = Promise.resolve();
      const perSecond = await timed(messages, async () => {
        running = consumeEvents(
          parts,
          { stream, consumer, advisories: [], predecessorWaitMs: 30_000 },
          stop.signal,
        );
        while (await acked(connection, consumer.durable) < messages) {
          await new Promise((again) => setTimeout(again, 20));
        }
      });
      stop.abort();
      await running;
      await link.close();
      await assertStored(database, messages);
      return { perSecond, figures: {} };
    },
    limits: [{
      name: "consume and ack",
      what: "of the same messages, no database",
      target: 0.35,
      measure: () => consumeAlone(connection, messages, `bench-consume-${++rounds}`),
    }],
    [Symbol.asyncDispose]: async () => {
      await pool.end();
      await connection.close();
    },
  };
}

/** Each the first change of its user, as most are. */
async function fill(connection: NatsConnection, messages: number): Promise<void> {
  await ensureStream(await connection.jetstreamManager(), stream);
  const publisher = openPublisher(connection, stream.subject);
  await Promise.all(Array.from({ length: messages }, (_, i) => {
    const event = eventOf({ userId: `user-${i}`, sourceId: `purchase-${i}` });
    return publisher.publish({ id: event.eventId, headers: {}, body: bodyOf(event) });
  }));
  publisher.close();
}

async function consumeAlone(
  connection: NatsConnection,
  messages: number,
  durable: string,
): Promise<number> {
  const manager = await connection.jetstreamManager();
  await manager.consumers.add(stream.name, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 20_000,
  });
  const consumer = await connection.jetstream().consumers.get(stream.name, durable);
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
    while (await acked(connection, durable) < messages) {
      await new Promise((again) => setTimeout(again, 5));
    }
    void incoming.close();
  });
}

/** All up to here are acknowledged. */
async function acked(connection: NatsConnection, durable: string): Promise<number> {
  const manager = await connection.jetstreamManager();
  const info = await manager.consumers.info(stream.name, durable).catch(() => undefined);
  return info?.ack_floor.stream_seq ?? 0;
}

function assertStored(database: BenchDatabase, messages: number): Promise<void> {
  return asOwner(database, async (owner) => {
    for (const from of ["notifications where status = 'PENDING'", "processed_events"]) {
      const count = await countOf(owner, from);
      if (count !== messages) throw new Error(`${count} instead of ${messages} rows: ${from}`);
    }
  });
}
