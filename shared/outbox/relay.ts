import type { JetStreamManager } from "nats";
import type { NatsLink, Session } from "../nats/link.ts";
import { eachSession } from "../nats/sessions.ts";
import { ensureStream, type WantedStream } from "../nats/streams.ts";
import type { Outcome } from "../queue/job.ts";
import type { Log } from "../process/log.ts";
import { pause } from "../process/signals.ts";
import type { Handover } from "../queue/handover.ts";
import { Worker } from "../queue/worker.ts";
import type { WorkerOptions } from "../queue/worker_settings.ts";
import {
  type EventMessage,
  type EventRow,
  type EventTypes,
  toMessage,
  traceIdOf,
  Unpublishable,
} from "./event_types.ts";
import { openPublisher, type Publisher } from "./publisher.ts";
import type { EventSource, OpenSource, Published } from "./source.ts";

export interface RelayOptions extends WorkerOptions {
  stream: WantedStream;
  types: EventTypes;
  worker: string;
}

export interface RelayParts<Row extends EventRow> {
  openSource: OpenSource<Row>;
  link: NatsLink;
  toRelay: Handover<Row>;
  compared?: Compared;
  log: Log;
  abandon: AbortSignal;
  // Called for each event that could not be published because NATS was unavailable, and for each
  // connection that was lost.
  observeOutage?(): void;
}

// The session, if any, in which the relay has found out what the stream has lost. Before that the outbox
// says that events are published which a new stream does not have.
export interface Compared {
  session?: Session | undefined;
}

const watchMs = 5_000;
const refusedMs = 5_000; // until an event is tried again whose subject NATS does not permit

// Publishes the events of a source. Each connection to NATS begins a round, and so does each sign
// that the stream was replaced or has lost messages: the relay creates or checks the stream,
// republishes what it has lost, and only then publishes anything else.
//
// While NATS is down there is no session, and the relay claims nothing. Events that it still holds
// are released without counting an attempt. They stay in the source until the next round.
export async function runRelay<Row extends EventRow>(
  parts: RelayParts<Row>,
  options: RelayOptions,
  stop: AbortSignal,
): Promise<void> {
  await eachSession(parts.link, {
    name: "relay",
    complaint: "The relay can't start yet: {reason}",
    log: parts.log,
    ensure: (manager, mayMake) => ensureStream(manager, options.stream, mayMake),
    work: async ({ session, manager, info }, works) => {
      const server = { manager, serverId: session.connection.info?.server_id ?? "" };
      const source = parts.openSource(options, parts.log);
      const generation = await source.loss?.compare(server, options.stream.name) ?? 0;
      works();
      const createdAt = `${info.created}`;
      const { compared = {} } = parts;
      compared.session = session;
      try {
        await relayRound(parts, options, session, { source, manager, generation, createdAt });
      } finally {
        compared.session = undefined;
      }
      if (session.signal.aborted && !stop.aborted) parts.observeOutage?.();
    },
  }, stop);
}

interface Round<Row extends EventRow> {
  source: EventSource<Row>;
  manager: JetStreamManager;
  generation: number;
  createdAt: string;
}

async function relayRound<Row extends EventRow>(
  parts: RelayParts<Row>,
  options: RelayOptions,
  { connection, signal, refused }: Session,
  round: Round<Row>,
): Promise<void> {
  const { source, generation } = round;
  const { stream, types } = options;
  const publisher = openPublisher(connection, parts.link.name);
  const publishing = { publisher, types, generation, waits: waitsFor(stream, refused, parts.log) };
  const streamChanged = new AbortController();
  const until = AbortSignal.any([signal, streamChanged.signal]);
  const worker = new Worker<Row, Published>(
    {
      name: "relay",
      ...options,
      claim: (limit, context) => source.claim(limit, context),
      work: async (row, traceparent) => {
        const outcome = await publishRow(publishing, row, traceparent);
        if (outcome.kind === "unavailable") parts.observeOutage?.();
        return outcome;
      },
      settle: (settled) => source.settle(settled),
      extend: (rows) => source.extend(rows),
      stepOf: ({ content }) => ({
        name: `publish ${types.get(content.event_type)?.subject ?? "an unknown type"}`,
        kind: "producer",
      }),
      traceparentOf: (row) => row.content.traceparent,
      about: (row) => ({ event_id: row.id, trace_id: traceIdOf(row) }),
    },
    parts.log,
    parts.abandon,
  );
  const watching = watchStream(round, stream, publisher, until)
    .then(() => streamChanged.abort());
  await worker.run(parts.toRelay, until);
  publisher.close();
  streamChanged.abort();
  await watching;
}

interface Publishing {
  publisher: Publisher;
  types: EventTypes;
  generation: number;
  waits(subject: string): boolean;
}

async function publishRow(
  { publisher, types, generation, waits }: Publishing,
  row: EventRow,
  traceparent?: string,
): Promise<Outcome<Published>> {
  const { event_type } = row.content;
  const type = types.get(event_type);
  if (!type) {
    // A newer replica may have written the event, and know the type.
    return { kind: "retry", error: `This version does not know the event type "${event_type}"` };
  }
  let message: EventMessage;
  try {
    message = toMessage(row, type, traceparent);
  } catch (error) {
    if (!(error instanceof Unpublishable)) throw error;
    return { kind: "failed", error: error.message };
  }
  const result = await publisher.publish(message);
  if (result.kind !== "acked" && waits(type.subject)) return { kind: "later", delayMs: refusedMs };
  switch (result.kind) {
    case "acked":
      return {
        kind: "done",
        result: { generation, sequence: result.sequence, ackedAt: performance.now() },
      };
    case "refused":
      return { kind: "retry", error: result.error };
    case "unavailable":
      return result;
  }
}

// Whether the events of a subject wait because NATS does not permit to publish to it. The events of
// the other subjects must not wait with them.
function waitsFor(
  { subjects }: WantedStream,
  refused: ReadonlySet<string>,
  log: Log,
): (subject: string) => boolean {
  const reported = new Set<string>();
  return (subject) => {
    if (!refused.has(subject) || subjects.every((one) => refused.has(one))) return false;
    if (!reported.has(subject)) {
      log.warn("Events wait because NATS does not permit to publish to {subject}", { subject });
    }
    reported.add(subject);
    return true;
  };
}

// Returns when the stream was created anew, when its last sequence is below one that it has
// acknowledged, or when it lacks a subject, which a replica of an earlier release may have removed.
// All of that can happen without the connection being lost.
async function watchStream<Row extends EventRow>(
  { source, manager, createdAt }: Round<Row>,
  stream: WantedStream,
  publisher: Publisher,
  until: AbortSignal,
): Promise<void> {
  while (!until.aborted) {
    await pause(watchMs, until);
    if (until.aborted) return;
    const acked = publisher.lastSequence();
    try {
      const { created, state, config } = await manager.streams.info(stream.name);
      if (String(created) !== createdAt || state.last_seq < acked) return;
      if (!stream.subjects.every((subject) => config.subjects.includes(subject))) return;
    } catch {
      return;
    }
    // A relay that did not notice the loss may have settled events since, and have ended. An error
    // is ignored here because the claims report a database that fails.
    await source.loss?.republishLate().catch(() => {});
  }
}
