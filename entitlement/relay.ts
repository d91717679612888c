import type { JetStreamManager } from "nats";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import { StartRefused } from "@kenri/shared/process/start_refused.ts";
import type { Handover } from "@kenri/shared/queue/handover.ts";
import type { Outcome } from "@kenri/shared/queue/job.ts";
import type { NatsLink, Session } from "@kenri/shared/nats/link.ts";
import type { Log } from "@kenri/shared/process/log.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import { Provisions } from "@kenri/shared/nats/provisions.ts";
import { pause } from "@kenri/shared/process/signals.ts";
import { ensureStream, type WantedStream, warnOfLoss } from "@kenri/shared/nats/streams.ts";
import { Worker } from "@kenri/shared/queue/worker.ts";
import type { Backoff } from "@kenri/shared/queue/backoff.ts";
import { type EventMessage, toMessage, traceIdOf } from "./event.ts";
import { UnreadablePayload } from "@kenri/proto/entitlement/encode.ts";
import { repairLostEvents } from "./lost_events.ts";
import { observePublished } from "./metrics.ts";
import { outbox, type OutboxRow, type Published } from "./outbox.ts";
import { openPublisher, type Publisher } from "./publisher.ts";
import { republishLost } from "./republish/republish_lost.ts";
import { sealed } from "@kenri/proto/entitlement/seal.ts";

export interface RelayOptions {
  stream: WantedStream;
  sealKey?: string | undefined;
  worker: string;
  batchSize: number;
  leaseMs: number;
  pollIntervalMs: number;
  maxAttempts: number;
  backoff: Backoff;
}

export interface RelayParts {
  database: Database;
  link: NatsLink;
  toRelay: Handover<OutboxRow>;
  log: Log;
  abandon: AbortSignal;
}

const watchMs = 5_000;

// Publishes the outbox. Each connection to NATS begins a round, and so does each sign that the
// stream was replaced or has lost messages: the relay creates or checks the stream, republishes
// what it has lost, and only then publishes anything else.
//
// While NATS is down there is no session, and the relay claims nothing. Events that it still holds
// are released without counting an attempt. They stay in the outbox until the next round.
export async function runRelay(
  parts: RelayParts,
  options: RelayOptions,
  stop: AbortSignal,
): Promise<void> {
  const provisions = new Provisions(parts.link, "relay");
  let warned = false;
  let reported = "";
  while (!stop.aborted) {
    const session = await parts.link.session(stop);
    if (!session) return;
    try {
      const { manager, info } = await provisions.ensure(session, async (manager, mayMake) => ({
        manager,
        info: await ensureStream(manager, options.stream, mayMake),
      }));
      if (!warned) warnOfLoss(info, parts.log);
      warned = true;
      const generation = await repairLostEvents(
        parts.database,
        { manager, serverId: session.connection.info?.server_id ?? "" },
        options.stream.name,
        parts.log,
      );
      reported = "";
      const round = { manager, generation, createdAt: String(info.created) };
      await relayRound(parts, options, session, round);
    } catch (error) {
      if (error instanceof StartRefused) throw error;
      const reason = reasonOf(error);
      if (reason !== reported) parts.log.warn("The relay can't start yet: {reason}", { reason });
      reported = reason;
      await pause(options.pollIntervalMs, stop);
    }
  }
}

interface Round {
  manager: JetStreamManager;
  generation: number;
  createdAt: string;
}

async function relayRound(
  parts: RelayParts,
  options: RelayOptions,
  session: Session,
  round: Round,
): Promise<void> {
  const publisher = openPublisher(session.connection, options.stream.subject);
  const streamChanged = new AbortController();
  const until = AbortSignal.any([session.signal, streamChanged.signal]);
  const { database, log, abandon } = parts;
  const worker = new Worker<OutboxRow, Published>(
    {
      name: "relay",
      ...options,
      claim: outbox.claimRepeatedly(database, options),
      work: (row, traceparent) =>
        publishRow(publisher, row, { ...round, sealKey: options.sealKey }, traceparent),
      settle: async (settled) => {
        const owned = await outbox.settle(database, settled);
        observePublished(settled, owned);
        return owned;
      },
      extend: (rows) => outbox.extend(database, rows, options.leaseMs),
      step: { name: `publish ${options.stream.subject}`, kind: "producer" },
      traceparentOf: (row) => row.content.traceparent,
      about: (row) => ({ event_id: row.id, trace_id: traceIdOf(row) }),
    },
    log,
    abandon,
  );
  const watching = watchStream(parts, options.stream.name, round, publisher, until)
    .then(() => streamChanged.abort());
  await worker.run(parts.toRelay, until);
  publisher.close();
  streamChanged.abort();
  await watching;
}

async function publishRow(
  publisher: Publisher,
  row: OutboxRow,
  { generation, sealKey }: { generation: number; sealKey: string | undefined },
  traceparent: string | null = row.content.traceparent,
): Promise<Outcome<Published>> {
  let message: EventMessage;
  try {
    message = sealed(toMessage(row, traceparent), sealKey);
  } catch (error) {
    if (!(error instanceof UnreadablePayload)) throw error;
    return { kind: "failed", error: error.message };
  }
  const result = await publisher.publish(message);
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

// Returns when the stream was created anew, or when its last sequence is below one that it has
// acknowledged. Both can happen without the connection being lost.
async function watchStream(
  { database, log }: RelayParts,
  stream: string,
  { manager, createdAt }: Round,
  publisher: Publisher,
  until: AbortSignal,
): Promise<void> {
  while (!until.aborted) {
    await pause(watchMs, until);
    if (until.aborted) return;
    const acked = publisher.lastSequence();
    try {
      const info = await manager.streams.info(stream);
      if (String(info.created) !== createdAt || info.state.last_seq < acked) return;
    } catch {
      return;
    }
    // A relay that did not notice the loss may have settled events since, and have ended. An error
    // is ignored here because the claims report a database that fails.
    await republishLost(database, log).catch(() => {});
  }
}
