import { createInbox, headers as createHeaders, type Msg, type NatsConnection } from "nats";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import { inboxesOf } from "@kenri/shared/nats/connection.ts";
import type { EventMessage } from "./event.ts";

// Publishes to JetStream with many messages in flight. Each message carries a reply subject of its
// own below one inbox, and one subscription reads all acknowledgements: a fraction of the work of
// one request per message.

export type PublishResult =
  | { kind: "acked"; sequence: number }
  | { kind: "refused"; error: string } // the stream took others, but not this one
  | { kind: "unavailable"; error: string }; // the stream or the connection is away

export interface Publisher {
  publish(message: EventMessage): Promise<PublishResult>;
  lastSequence(): number; // the highest that was acknowledged
  close(): void;
}

interface Pending {
  number: number; // in the order of sending, in which the stream answers
  sentAt: number;
  resolve(result: PublishResult): void;
}

const ackTimeoutMs = 5_000;
const sweepMs = 250;
const maxInFlight = 2_000; // bounds memory; more in flight than this is no faster

export function openPublisher(connection: NatsConnection, subject: string): Publisher {
  const inbox = createInbox(inboxesOf("entitlement"));
  const pending = new Map<string, Pending>(); // the oldest is first
  const queue: (() => void)[] = []; // those who wait for room among the pending
  let sent = 0;
  let lastAcked = -1;
  let lastSequence = 0;
  let sweeper: ReturnType<typeof setInterval> | undefined;

  const finish = (id: string, result: PublishResult) => {
    const waiting = pending.get(id);
    if (!waiting) return;
    pending.delete(id);
    if (result.kind === "acked") {
      lastAcked = Math.max(lastAcked, waiting.number);
      lastSequence = Math.max(lastSequence, result.sequence);
    }
    waiting.resolve(result);
    queue.shift()?.();
    if (pending.size === 0) stopSweeping();
  };
  const stopSweeping = () => {
    clearInterval(sweeper);
    sweeper = undefined;
  };
  const failAll = (error: string) => {
    for (const id of [...pending.keys()]) finish(id, { kind: "unavailable", error });
  };
  // A message that is not acknowledged in time is to blame itself only if one that was sent after it
  // is: otherwise it is the stream that does not answer.
  const sweep = () => {
    const oldest = performance.now() - ackTimeoutMs;
    for (const [id, { number, sentAt }] of pending) {
      if (sentAt > oldest) break;
      const error = "No acknowledgement in time";
      finish(id, { kind: number < lastAcked ? "refused" : "unavailable", error });
    }
  };

  const subscription = connection.subscribe(`${inbox}.*`, {
    callback: (error, message) => {
      if (error) return failAll(reasonOf(error));
      finish(message.subject.slice(inbox.length + 1), readAck(message));
    },
  });
  void connection.closed().then((error) => {
    failAll(error ? reasonOf(error) : "The connection was closed");
  });

  return {
    lastSequence: () => lastSequence,
    close: () => {
      subscription.unsubscribe();
      failAll("The publisher was closed");
    },
    async publish({ id, headers, body }) {
      while (pending.size >= maxInFlight) await new Promise<void>((go) => queue.push(go));
      const number = sent++;
      const token = `${number}`;
      const { promise, resolve } = Promise.withResolvers<PublishResult>();
      try {
        const natsHeaders = createHeaders();
        natsHeaders.set("Nats-Msg-Id", id);
        for (const [name, value] of Object.entries(headers)) natsHeaders.set(name, value);
        connection.publish(subject, body, { headers: natsHeaders, reply: `${inbox}.${token}` });
      } catch (error) {
        queue.shift()?.(); // the room goes to the next
        return { kind: isClosed(connection) ? "unavailable" : "refused", error: reasonOf(error) };
      }
      pending.set(token, { number, sentAt: performance.now(), resolve });
      sweeper ??= setInterval(sweep, sweepMs);
      return promise;
    },
  };
}

function isClosed(connection: NatsConnection): boolean {
  return connection.isClosed() || connection.isDraining();
}

interface PubAck {
  seq?: number;
  error?: { code: number; err_code?: number; description: string };
}

function readAck(message: Msg): PublishResult {
  if (message.data.length === 0) {
    // 503: no stream listens on the subject, or it has no leader.
    return {
      kind: "unavailable",
      error: `No stream answers (${message.headers?.code ?? "empty"})`,
    };
  }
  try {
    const { seq, error } = message.json<PubAck>();
    if (error) return { kind: kindOf(error), error: error.description };
    if (seq) return { kind: "acked", sequence: seq };
  } catch {
    // Falls through: an answer that is no acknowledgement.
  }
  return { kind: "unavailable", error: "The acknowledgement can't be read" };
}

const messageTooLarge = 10054;
const headersTooLarge = 10097;

// Errors of the server are about its state (no space, no leader, sealed, too slow), save those that
// name the message itself.
function kindOf({ err_code }: { err_code?: number }): "refused" | "unavailable" {
  return err_code === messageTooLarge || err_code === headersTooLarge ? "refused" : "unavailable";
}
