import type { NatsLink } from "../nats/link.ts";
import type { Durable, Message } from "../nats/pull.ts";
import { eachSession } from "../nats/sessions.ts";
import type { Database } from "../postgres/postgres.ts";
import type { Log } from "../process/log.ts";
import type { Loop } from "../process/loop.ts";
import { captureAdvisories } from "./capture_advisories.ts";
import { type AdvisoryOptions, ensureInbox, type InboxStreams } from "./durables.ts";
import { Intake, type Outcome } from "./intake.ts";

// Receives the events of a stream, each once in effect: its durable consumer redelivers a message
// until it is acknowledged, which happens after the commit, and the store of the service finds
// duplicates. A service may have several inboxes, each with its own stream, durable, decoder and
// store.

export interface InboxEvent {
  event_id: string;
  payload: unknown; // as it is shown to operators
  traceparent?: string; // set by the inbox if tracing is enabled
}

export interface Inbox<Event extends InboxEvent> extends InboxStreams {
  name: string; // of its loop
  mayWait?: boolean; // whether the service may start while NATS lacks its stream or consumer
  batch: string; // label of its batch in the metrics
  // Throws UnreadableMessage if redelivering does not help; the message is then terminated. After
  // any other error it is redelivered with growing delays.
  decode(message: Message): Event;
  // Stores a batch with different ids in one transaction. Returns for each event whether it is new.
  store(events: Event[]): Promise<boolean[]>;
  counts: Record<Outcome, { inc(): void }>;
  // The table for messages that JetStream no longer delivers (capture_advisories.ts).
  deadLetters?: DeadLetters;
}

export interface DeadLetters {
  database: Database;
  table: string;
}

export interface InboxParts {
  link: NatsLink;
  log: Log;
  abandon: AbortSignal;
}

export function inboxLoops<Event extends InboxEvent>(
  parts: InboxParts,
  inbox: Inbox<Event>,
): Loop[] {
  const { name, mayWait = false, advisories, deadLetters } = inbox;
  const captureLoop = (advisory: AdvisoryOptions, where: DeadLetters): Loop => {
    const loop = `capture of ${advisory.kind} for ${name}`;
    const captureParts = { ...parts, ...where, name: loop, mayWait };
    return { name: loop, run: (stop) => captureAdvisories(captureParts, advisory, stop) };
  };
  return [
    { name, run: (stop) => receive(parts, inbox, stop) },
    ...deadLetters ? advisories.map((advisory) => captureLoop(advisory, deadLetters)) : [],
  ];
}

export function receive<Event extends InboxEvent>(
  parts: InboxParts,
  inbox: Inbox<Event>,
  stop: AbortSignal,
): Promise<void> {
  return eachSession(parts.link, {
    name: inbox.name,
    mayWait: inbox.mayWait ?? false,
    complaint: "Events can't be consumed, trying again: {reason}",
    log: parts.log,
    ensure: (manager, mayMake) => ensureInbox(manager, inbox, mayMake),
    work: async ({ session: { connection, signal, refused } }, works) => {
      const { stream, consumer } = inbox;
      const durable: Durable = {
        connection,
        service: parts.link.name,
        stream: stream.name,
        name: consumer.durable,
        refused,
      };
      const intake = new Intake(parts, inbox);
      try {
        while (!signal.aborted) {
          await intake.fill(durable, signal);
          works();
        }
      } finally {
        await intake.empty();
      }
    },
  }, stop);
}
