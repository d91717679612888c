// What is compared: our relay, the libraries and the loops written by hand. Each publishes waiting events,
// and each measurement checks the messages of the stream.
import type pg from "pg";
import { DeliverPolicy, type NatsConnection } from "nats";
import { decodeEvent } from "../../proto/entitlement/decode.ts";
import { ensureStream } from "../../shared/nats/streams.ts";
import { hasRow } from "../bench/database.ts";
import { seed, startRelayDrain, storedIn } from "../bench/relay_drain.ts";
import { type Bench, timed } from "../bench/work.ts";
import { ask, withClient } from "../servers/asking.ts";
import { countLate, type Message } from "./checks.ts";
import type { Name, Task } from "./contender.ts";
import { type LibraryProcess, startLibraryProcess } from "./library_process.ts";

export interface Measured {
  perSecond: number;
  events: number;
  late: number; // events behind a later one of their key
}

export interface Contender extends AsyncDisposable {
  name: string;
  isOrdered: boolean;
  measure(events: number, keys: number): Promise<Measured>;
}

export interface Place {
  bench: Bench;
  connection: NatsConnection;
  sourceUrl: string; // an outbox whose events the others get
  filler: LibraryProcess;
}

export async function startRelay({ bench, connection }: Place, items: number): Promise<Contender> {
  const name = "peers";
  const drain = await startRelayDrain(bench, { name, items });
  return {
    name: "our relay",
    isOrdered: true,
    measure: async (_, keys) => {
      const manager = await connection.jetstreamManager();
      const before = await storedIn(manager, `bench-${name}`);
      const perSecond = await drain.run(keys);
      const messages = await readMessages(connection, `bench-${name}`, before, items);
      const late = countLate(messages, await idsIn(drain.database.ownerUrl));
      if (late > 0) throw new Error(`${late} events are out of order`);
      return { perSecond, events: items, late };
    },
    [Symbol.asyncDispose]: () => drain[Symbol.asyncDispose](),
  };
}

// The rows that are not yet known to be in the stream.
const waitingOf: Record<Name, string> = {
  "graphile-worker": "graphile_worker._private_jobs",
  "pg-boss": "pgboss.job where state < 'completed'",
  "pg-transactional-outbox": "outbox where processed_at is null",
  "loop with js.publish": "outbox where published_at is null",
  "loop with lean publisher": "outbox where published_at is null",
};

const timeLimitMs = 60_000;

export async function startLibrary(
  { bench: { servers }, connection, sourceUrl, filler }: Place,
  name: Name,
  isOrdered: boolean,
): Promise<Contender> {
  const id = `peers_${name.replaceAll(/\W+/g, "_")}_${isOrdered ? "ordered" : "unordered"}`;
  await ask(servers.postgres.url, `create database ${id}`);
  const stream = id;
  const task = {
    name,
    isOrdered,
    databaseUrl: servers.postgres.urlOf({ database: id }),
    natsUrl: servers.nats.url,
    subject: `${id}.events`,
  };
  const manager = await connection.jetstreamManager();
  const wanted = { duplicateWindowMs: 120_000, replicas: 1 }; // as our service has it
  await ensureStream(manager, { ...wanted, name: stream, subjects: [task.subject] });
  await filler.ask({ do: "install", task: { ...task, keys: 0 } });
  const process = startLibraryProcess();

  async function drained(owner: pg.Client, before: number, events: number): Promise<void> {
    const untilMs = performance.now() + timeLimitMs;
    const wait = async () => {
      if (performance.now() > untilMs) {
        throw new Error(`${name} did not publish ${events} events in time`);
      }
      await new Promise((again) => setTimeout(again, 10));
    };
    while (await storedIn(manager, stream) - before < events) await wait();
    while (await hasRow(owner, waitingOf[name])) await wait();
  }

  return {
    name,
    isOrdered,
    measure: async (events, keys) => {
      const all: Task = { ...task, keys };
      await withClient(sourceUrl, (owner) => seed(owner, events, { keys }));
      const before = await storedIn(manager, stream);
      await process.ask({ do: "start", task: all });
      await filler.ask({ do: "fill", task: all, sourceUrl });
      const perSecond = await withClient(
        task.databaseUrl,
        (owner) => timed(events, () => drained(owner, before, events)),
      );
      await process.ask({ do: "stop" });
      const stored = await storedIn(manager, stream) - before;
      const messages = await readMessages(connection, stream, before, stored);
      return { perSecond, events, late: countLate(messages, await idsIn(sourceUrl)) };
    },
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}

async function idsIn(url: string): Promise<Set<string>> {
  const rows = await ask<{ event_id: string }>(url, "select event_id from outbox_events");
  return new Set(rows.map(({ event_id }) => event_id));
}

async function readMessages(
  connection: NatsConnection,
  stream: string,
  after: number,
  count: number,
): Promise<Message[]> {
  const consumer = await connection.jetstream().consumers.get(stream, {
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: after + 1,
  });
  const messages: Message[] = [];
  const all = await consumer.consume({ max_messages: 1_000 });
  for await (const { headers, data } of all) {
    const id = headers?.get("Nats-Msg-Id") ?? "";
    const { version } = decodeEvent(data);
    messages.push({ id, key: headers?.get("aggregate_key") ?? "", version });
    if (messages.length === count) break;
  }
  await all.close();
  return messages;
}
