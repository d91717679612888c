import { createInbox, headers as createHeaders, type Msg, type NatsConnection } from "nats";
import { reasonOf } from "@kenri/shared/process/reason.ts";
import { inboxesOf } from "@kenri/shared/nats/connection.ts";
import type { EventMessage } from "./event.ts";

// Publishes to JetStream with many messages in flight. Each message has a reply subject of its own
// below one inbox, and one subscription reads all acknowledgements. That is much less work than a
// request for each message.

export type PublishResult =
  | { kind: "acked"; sequence: number }
  | { kind: "refused"; error: string } // the stream accepts other messages, but not this one
  | { kind: "unavailable"; error: string }; // the stream or NATS does not answer

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
const maxInFlight = 2_000; // bounds the memory; more messages in flight are not faster

export function openPublisher(connection: NatsConnection, subject: string): Publisher {
  const inbox = createInbox(inboxesOf("entitlement"));
  const pending = new Map<string, Pending>(); // the oldest is first
  const queue: (() => void)[] = []; // publishes that wait until fewer are in flight
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
  // A message that is not acknowledged in time counts as refused only if a message that was sent
  // after it was acknowledged. Otherwise the stream answers nobody.
  const sweep = () => {
    const oldest = performance.now() - ackTimeoutMs;
    for (const [id, { number, sentAt }] of pending) {
      if (sentAt > oldest) break;
      const error = "The stream did not acknowledge the message in time";
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
        queue.shift()?.(); // the next one may be sent instead
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
    // 503: the subject belongs to no stream, or its stream has no leader.
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
    // The answer is not JSON, and so it is no acknowledgement.
  }
  return { kind: "unavailable", error: "The acknowledgement can't be read" };
}

const messageTooLarge = 10054;
const headersTooLarge = 10097;

// Errors of the server are about its state (no space, no leader, sealed, too slow), except for the
// two that are about the message.
function kindOf({ err_code }: { err_code?: number }): "refused" | "unavailable" {
  return err_code === messageTooLarge || err_code === headersTooLarge ? "refused" : "unavailable";
}
