// The invariants of the design, as rules about a state and about a step.
import { maxAttempts } from "./hand.ts";
import {
  type Event,
  events,
  type Held,
  type Inbox,
  type Outbox,
  type Row,
  type State,
} from "./state.ts";

type Tables = Outbox | Inbox;

export const rules = {
  fence: "a worker that lost its lease changes nothing",
  final: "a finished row stays as it is, unless the stream loses its event",
  publishOrder: "an event is not published before the earlier ones of its key",
  sendOrder: "a notification is not sent before the earlier ones of its key",
  onceEach: "an event has a row in processed_events if and only if it has a notification",
  deadLetter: "a notification is FAILED if and only if it has one dead letter",
  published: "an event that is PUBLISHED or received was stored by the stream",
  sent: "a notification that is SENT was accepted by the channel",
  ownAttempts: "only a row's own failures count as its attempts",
  usedUp: "a row is FAILED when its attempts are used up, and not before",
  leased: "exactly the rows that are worked on have a lease",
  missing: "only a PUBLISHED event is republished because it was not received",
  redelivered: "an event that the stream will deliver again does not count as missing",
  awaits: "only a notification that was never claimed waits for its predecessor",
};

export function brokenIn(state: State, faults: number): string | undefined {
  const { publishing, sending, stream, history } = state;
  const [outbox, inbox] = [publishing.tables.rows, sending.tables.rows];
  const rows: (Row | null)[] = [...outbox, ...inbox];
  // Each restart of the broker was a fault, but it did not affect a row.
  const ownFaults = faults - history.faultsLeft - (stream.run - 1);
  const broken: Partial<Record<keyof typeof rules, boolean>> = {
    onceEach: inbox.some((row, event) => (row !== null) !== sending.tables.processed[event]),
    deadLetter: inbox.some((row) => row && row.deadLetters !== Number(row.status === "FAILED")),
    published: outbox.some((row, event) =>
      !history.published[event] &&
      (row?.status === "PUBLISHED" || sending.tables.processed[event])
    ),
    sent: inbox.some((row, event) => row?.status === "SENT" && !history.sent[event]),
    ownAttempts: rows.some((row) => row && row.attempts > ownFaults),
    usedUp: rows.some((row) => row?.status === "FAILED" && row.attempts < maxAttempts),
    leased: rows.some((row) => row && isWorkedOn(row) !== (row.lease !== "none")),
    awaits: inbox.some((row) =>
      row?.awaitsPredecessor && (row.status !== "PENDING" || row.attempts > 0)
    ),
  };
  const rule = Object.keys(broken).find((name) => broken[name as keyof typeof rules]);
  return rule && rules[rule as keyof typeof rules];
}

export function changesWithoutLease(
  held: Held[],
  before: Tables,
  after: Tables,
): string | undefined {
  const lost = held.filter(({ leased }) => !leased);
  return lost.some(({ event }) => differ(before.rows[event], after.rows[event]))
    ? rules.fence
    : undefined;
}

export function changesUnpublished(before: Outbox, after: Outbox): string | undefined {
  const changed = before.rows.some((row, event) =>
    row?.status !== "PUBLISHED" && differ(row, after.rows[event])
  );
  return changed ? rules.missing : undefined;
}

export function changesFinished(before: Tables, after: Tables): string | undefined {
  const changed = before.rows.some((row, event) =>
    row && !isUnfinished(row) && differ(row, after.rows[event])
  );
  return changed ? rules.final : undefined;
}

/** Checks the first publish or send. It need not wait for a predecessor that `isOver`. */
export function comesTooEarly(
  event: Event,
  came: boolean[],
  isOver: (earlier: Event) => boolean,
): boolean {
  const { key, version = 0 } = events[event] ?? {};
  return !came[event] &&
    events.some((other, earlier) =>
      other.key === key && other.version < version && !came[earlier] && !isOver(earlier)
    );
}

// In a quiet state all work is finished. One must be reachable from every state.
export function isQuiet(
  { publishing, stream, consumers, sending, missing }: State,
  expected: Event[],
): boolean {
  const inbox = sending.tables;
  const has = (event: Event) => stream.messages.some((message) => message.event === event);
  const arrived = (event: Event) =>
    consumers.length > 0 ? isOneOf(inbox.rows[event]?.status, "SENT", "FAILED") : has(event);
  return [...publishing.workers, ...consumers, ...sending.workers]
    .every(({ held }) => held.length === 0) &&
    [...publishing.workers, ...sending.workers].every(({ flight }) => flight.length === 0) &&
    missing.length === 0 &&
    expected.every((event) => {
      const status = publishing.tables.rows[event]?.status;
      return status === "FAILED" || (status === "PUBLISHED" && arrived(event));
    }) &&
    inbox.rows.every((row) => row === null || isOneOf(row.status, "SENT", "FAILED"));
}

export function isUnfinished({ status }: Row): boolean {
  return status === "PENDING" || isWorkedOn({ status });
}

function isWorkedOn({ status }: Pick<Row, "status">): boolean {
  return isOneOf(status, "IN_FLIGHT", "PROCESSING");
}

function isOneOf(status: string | undefined, ...statuses: string[]): boolean {
  return status !== undefined && statuses.includes(status);
}

function differ(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) !== JSON.stringify(other);
}
