// The invariants of the design, as rules about a state and about a step.
import { maxAttempts } from "./hand.ts";
import { requests } from "./points_calls.ts";
import {
  type Event,
  events,
  type Held,
  type LeasedTables,
  type Orders,
  type Outbox,
  type Points,
  type Row,
  type State,
} from "./state.ts";

export const rules = {
  fence: "a worker that lost its lease changes nothing",
  final: "a finished row stays as it is, unless the stream loses its event",
  due: "no claim takes a row before it is due",
  publishOrder: "an event is not published before the earlier ones of its key",
  sendOrder: "a notification is not sent before the earlier ones of its key",
  fireOrder: "a reminder does not fire before the earlier ones of its key",
  onceEach: "an event has a row in processed_events if and only if it has a notification",
  deadLetter: "a notification is FAILED if and only if it has one dead letter",
  published: "an event that is PUBLISHED or received was stored by the stream",
  sent: "a notification that is SENT was accepted by the channel",
  fired: "a reminder that is FIRED was worked on",
  announced: "a reminder is FIRED if and only if it has one event",
  ownAttempts: "only a row's own failures count as its attempts",
  usedUp: "a row is FAILED when its attempts are used up, and not before",
  leased: "exactly the rows that are worked on have a lease",
  missing: "only a PUBLISHED event is republished because it was not received",
  redelivered: "an event that the stream will deliver again does not count as missing",
  awaits: "only a notification that was never claimed waits for its predecessor",
  grantedOnce: "a reservation is DONE if and only if it has one transaction",
  askedOnce: "a request has one transaction if it was answered with 200, and never two",
  adds:
    "a balance is the sum of its transactions, its version their number, and it is not negative",
  recorded: "a transaction has one event and one audit row",
  cancels: "a reservation whose cancel was acknowledged stays CANCELLED",
  cancelsOnly: "a cancel changes only what is PENDING",
  orderOrder: "a webhook is not sent before the earlier ones of its key were accepted",
  fannedOut: "an event has an order if and only if it has a row in processed_events",
  ledger: "an order is SUCCEEDED or ABORTED if and only if the ledger says how it ended",
  delivered: "an order that is SUCCEEDED was accepted by its endpoint",
  sentAgain: "an order whose ledger says SUCCEEDED is not sent again",
  parked: "an order is parked only while its endpoint is not ACTIVE or is draining",
};

export function brokenIn(
  state: State,
  { faults, known = [] }: { faults: number; known?: Event[] },
): string | undefined {
  const { publishing, sending, firing, granting, ordering, stream, history } = state;
  const [outbox, inbox] = [publishing.tables.rows, sending.tables.rows];
  const reminders = firing.tables.rows;
  const rows: (Row | null)[] = [
    ...outbox,
    ...inbox,
    ...reminders,
    ...granting.tables.rows,
    ...ordering.tables.rows,
  ];
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
    fired: reminders.some((row, event) => row?.status === "FIRED" && !history.fired[event]),
    announced: reminders.some((row) => row && row.announced !== Number(row.status === "FIRED")),
    ownAttempts: rows.some((row) => row && row.attempts > ownFaults),
    usedUp: rows.some((row) => row?.status === "FAILED" && row.attempts < maxAttempts),
    leased: rows.some((row) => row && isWorkedOn(row) !== (row.lease !== "none")),
    awaits: inbox.some((row) =>
      row?.awaitsPredecessor && (row.status !== "PENDING" || row.attempts > 0)
    ),
    ...brokenInPoints(granting.tables, history.acknowledged),
    ...brokenInOrders(ordering.tables, history.accepted, known),
  };
  const rule = Object.keys(broken).find((name) => broken[name as keyof typeof rules]);
  return rule && rules[rule as keyof typeof rules];
}

function brokenInPoints(
  { rows, transactions, roots }: Points,
  acknowledged: string[],
): Partial<Record<keyof typeof rules, boolean>> {
  const sums = transactions.map((_, i) =>
    transactions.slice(0, i + 1).reduce((sum, { amount }) => sum + amount, 0)
  );
  const of = (name = "") => transactions.filter((one) => one.of === name).length;
  const [root = { balance: 0, version: 0 }] = roots;
  return {
    grantedOnce: rows.some((row, event) =>
      of(events[event]?.name) !== Number(row?.status === "DONE")
    ),
    askedOnce: Object.keys(requests).some((name) =>
      of(name) > 1 || of(name) < Number(acknowledged.includes(name))
    ),
    adds: root.balance !== (sums.at(-1) ?? 0) || root.version !== transactions.length ||
      transactions.some(({ balance, version }, i) =>
        balance !== sums[i] || version !== i + 1 || balance < 0
      ),
    recorded: transactions.some(({ events, audits }) => events !== 1 || audits !== 1),
    cancels: rows.some((row, event) =>
      acknowledged.includes(cancelOf(event)) && row?.status !== "CANCELLED"
    ),
  };
}

const inLedger: Record<string, string> = { SUCCEEDED: "SUCCEEDED", FAILED: "FAILED" };

function brokenInOrders(
  { rows, processed, ledger, endpoints: [endpoint] }: Orders,
  accepted: boolean[],
  known: Event[],
): Partial<Record<keyof typeof rules, boolean>> {
  const parks = endpoint?.state !== "ACTIVE" || endpoint.draining;
  return {
    fannedOut: rows.some((row, event) => (row !== null) !== processed[event]),
    ledger: rows.some((row, event) => {
      const says = row && (inLedger[row.status] ?? null);
      return says !== ledger[event] && !(says === null && known.includes(event));
    }),
    delivered: rows.some((row, event) => row?.status === "SUCCEEDED" && !accepted[event]),
    parked: !parks && rows.some((row) => row?.status === "PARKED"),
  };
}

export function cancelOf(event: Event): string {
  return `cancel ${events[event]?.name}`;
}

/** Checks a cancel. */
export function cancelsWrongly(event: Event, before: Points, after: Points): string | undefined {
  const row = before.rows[event];
  return row?.status !== "PENDING" && differ(row, after.rows[event])
    ? rules.cancelsOnly
    : undefined;
}

export function changesWithoutLease(
  held: Held[],
  before: LeasedTables,
  after: LeasedTables,
): string | undefined {
  const owns = (event: Event) => held.some((row) => row.event === event && row.leased);
  const lost = held.filter(({ event }) => !owns(event)); // it may have claimed a row once more
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

/** Checks a claim. */
export function claimsWrongly(
  claimed: Held[],
  before: LeasedTables,
  after: LeasedTables,
): string | undefined {
  const isTooEarly = claimed.some(({ event }) => {
    const row = before.rows[event];
    return row && (row.waits || ("early" in row && row.early === true));
  });
  return isTooEarly ? rules.due : changesFinished(before, after);
}

function changesFinished(before: LeasedTables, after: LeasedTables): string | undefined {
  const changed = before.rows.some((row, event) =>
    row && !isUnfinished(row) && differ(row, after.rows[event])
  );
  return changed ? rules.final : undefined;
}

/** Checks the first publish, send or firing. It need not wait for a predecessor that `isOver`. */
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
  { publishing, stream, consumers, sending, firing, granting, ordering, missing }: State,
  expected: { events: Event[]; reminders?: Event[]; reservations?: Event[]; orders?: Event[] },
): boolean {
  const inbox = sending.tables;
  const has = (event: Event) => stream.messages.some((message) => message.event === event);
  const arrived = (event: Event) =>
    consumers.length > 0 ? isOneOf(inbox.rows[event]?.status, "SENT", "FAILED") : has(event);
  const workers = [publishing, sending, firing, granting, ordering].flatMap((work) => work.workers);
  return [...workers, ...consumers].every(({ held }) => held.length === 0) &&
    workers.every(({ flight }) => flight.length === 0) &&
    missing.length === 0 &&
    expected.events.every((event) => {
      const status = publishing.tables.rows[event]?.status;
      return status === "FAILED" || (status === "PUBLISHED" && arrived(event));
    }) &&
    inbox.rows.every((row) => row === null || isOneOf(row.status, "SENT", "FAILED")) &&
    (expected.reminders ?? []).every((event) =>
      isOneOf(firing.tables.rows[event]?.status, "FIRED", "FAILED")
    ) &&
    (expected.reservations ?? []).every((event) =>
      isOneOf(granting.tables.rows[event]?.status, "DONE", "FAILED", "CANCELLED")
    ) &&
    (expected.orders ?? []).every((event) =>
      isOneOf(ordering.tables.rows[event]?.status, "SUCCEEDED", "FAILED")
    ) &&
    // One that is FAILING, and has no order that can be its probe, waits for the next.
    ordering.tables.endpoints.every(({ state, draining }) => state !== "ACTIVE" || !draining);
}

export function isUnfinished({ status }: Row): boolean {
  return status === "PENDING" || status === "RETRYING" || isWorkedOn({ status });
}

function isWorkedOn({ status }: Pick<Row, "status">): boolean {
  return isOneOf(status, "IN_FLIGHT", "PROCESSING", "FIRING", "SENDING");
}

function isOneOf(status: string | undefined, ...statuses: string[]): boolean {
  return status !== undefined && statuses.includes(status);
}

function differ(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) !== JSON.stringify(other);
}
