import {
  createInbox,
  headers as createHeaders,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
} from "nats";
import { inboxesOf } from "../nats/connection.ts";
import { type Deadline, Deadlines } from "../process/deadlines.ts";
import { reasonOf } from "../process/reason.ts";
import type { EventMessage } from "./event_types.ts";

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

const ackTimeoutMs = 5_000;
const maxInFlight = 2_000; // bounds the memory; more messages in flight are not faster

// NATS may permit the user of a service to subscribe only to inboxes of the service.
export function openPublisher(connection: NatsConnection, service: string): Publisher {
  const inbox = createInbox(inboxesOf(service));
  const inFlight = new InFlight();
  const subscription = connection.subscribe(`${inbox}.*`, {
    callback: (error, message) => {
      if (error) return inFlight.failAll(reasonOf(error));
      inFlight.finish(Number(message.subject.slice(inbox.length + 1)), readAck(message));
    },
  });
  void connection.closed().then((error) => {
    inFlight.failAll(error ? reasonOf(error) : "The connection was closed");
  });
  return {
    lastSequence: () => inFlight.lastSequence,
    close: () => {
      subscription.unsubscribe();
      inFlight.failAll("The publisher was closed");
    },
    async publish({ id, subject, headers, body }) {
      while (inFlight.isFull) await inFlight.capacity();
      const { number, result } = inFlight.begin();
      try {
        const options = { headers: encoded(id, headers), reply: `${inbox}.${number}` };
        connection.publish(subject, body, options);
      } catch (error) {
        const kind = isClosed(connection) ? "unavailable" : "refused";
        inFlight.finish(number, { kind, error: reasonOf(error) });
      }
      return result;
    },
  };
}

const encoder = new TextEncoder();

// The client's own way looks up and rewrites each name, which costs more than the rest of a small message.
function encoded(id: string, headers: Record<string, string> = {}): MsgHdrs {
  let text = `NATS/1.0\r\nNats-Msg-Id: ${id}\r\n`;
  for (const [name, value] of Object.entries(headers)) {
    if (/[\r\n]/.test(value)) throw new Error(`The header ${name} has a line break`);
    text += `${name}: ${value}\r\n`;
  }
  const bytes = encoder.encode(`${text}\r\n`);
  return Object.assign(createHeaders(), { encode: () => bytes });
}

const deadlines = new Deadlines(ackTimeoutMs);

interface Pending {
  deadline: Deadline;
  resolve(result: PublishResult): void;
}

// The messages that are not acknowledged yet.
class InFlight {
  lastSequence = 0;
  readonly #pending = new Map<number, Pending>(); // by number, in the order of sending
  readonly #waiting: (() => void)[] = []; // publishes that wait until fewer are in flight
  #sent = 0;
  #lastAcked = -1;

  get isFull(): boolean {
    return this.#pending.size >= maxInFlight;
  }

  capacity(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  begin(): { number: number; result: Promise<PublishResult> } {
    const number = this.#sent++;
    const { promise, resolve } = Promise.withResolvers<PublishResult>();
    const deadline = deadlines.begin(() => this.finish(number, this.#late(number)));
    this.#pending.set(number, { deadline, resolve });
    return { number, result: promise };
  }

  finish(number: number, result: PublishResult): void {
    const pending = this.#pending.get(number);
    if (!pending) return;
    this.#pending.delete(number);
    deadlines.meet(pending.deadline);
    if (result.kind === "acked") {
      this.#lastAcked = Math.max(this.#lastAcked, number);
      this.lastSequence = Math.max(this.lastSequence, result.sequence);
    }
    pending.resolve(result);
    this.#waiting.shift()?.();
  }

  failAll(error: string): void {
    for (const number of [...this.#pending.keys()]) {
      this.finish(number, { kind: "unavailable", error });
    }
  }

  // A message that is not acknowledged in time counts as refused only if a message that was sent
  // after it was acknowledged. Otherwise the stream answers nobody.
  #late(number: number): PublishResult {
    const error = "The stream did not acknowledge the message in time";
    return { kind: number < this.#lastAcked ? "refused" : "unavailable", error };
  }
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
