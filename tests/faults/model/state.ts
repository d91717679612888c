// One state of the system: the contents of both databases and of the stream, and the rows that each
// process holds. For a time it keeps only whether it is past, for a token only whether it is still
// the token of the row.

export const events = [
  { name: "e1", key: "ann:book", version: 1 },
  { name: "e2", key: "ann:book", version: 2 },
  { name: "e3", key: "ann:book", version: 3 },
  { name: "f1", key: "bob:book", version: 1 },
];

export type Event = number; // its place in `events`

export interface State {
  publishing: Work<Outbox>; // the relays and their table
  stream: Stream;
  consumers: Consumer[];
  sending: Work<Inbox>; // the deliverers and their table
  firing: Work<Reminders>; // the workers of the small service and their table
  granting: Work<Points>; // the workers that carry out reservations, and the tables of points
  ordering: Work<Orders>; // the workers that send orders, and their tables
  missing: Event[]; // found by the reconciliation and not republished yet
  history: History;
}

export interface Work<Tables> {
  tables: Tables;
  workers: Worker[];
}

export interface LeasedTables {
  rows: (Row | null)[]; // by event
}

export interface Outbox {
  rows: (OutboxRow | null)[]; // by event; null until it is committed
  generations: Generation[]; // the first is number 1
}

export interface Inbox {
  rows: (NotificationRow | null)[]; // by event
  processed: boolean[];
}

// A reminder has the number of the event that announces it.
export interface Reminders {
  rows: (ReminderRow | null)[]; // null until it is created
}

// A reservation has the number of an event, too. All are of one balance.
export interface Points {
  rows: (ReservationRow | null)[]; // null until it is accepted
  transactions: PointsTransaction[]; // by version
  roots: { balance: number; version: number }[]; // none before the first transaction
  answers: StoredPointsAnswer[]; // to requests other than reservations, while they are valid
}

export interface Row {
  status: string;
  attempts: number;
  waits: boolean; // next_retry_at is in the future
  lease: "none" | "runs" | "over";
}

export interface OutboxRow extends Row {
  place: Place | null;
}

export interface NotificationRow extends Row {
  awaitsPredecessor: boolean;
  deadLetters: number;
}

export interface ReminderRow extends Row {
  early: boolean; // its time is in the future
  announced: number; // events of it in the outbox
}

export interface ReservationRow extends Row {
  early: boolean; // its time is in the future
}

// The orders about the events, all of one endpoint. An order has the number of its event.
export interface Orders {
  rows: (OrderRow | null)[]; // null until the event is received
  processed: boolean[];
  ledger: (string | null)[]; // by event
  endpoints: EndpointRow[]; // the one
}

// RETRYING is what the table calls FAILED, and FAILED what it calls ABORTED.
export interface OrderRow extends Row {
  awaitsPredecessor: boolean;
}

export interface EndpointRow {
  state: string;
  draining: boolean;
  failures: number;
  probe: Event | null;
  probeWaits: boolean; // the next probe is not due
}

export interface PointsTransaction {
  of: string; // a reservation or a request
  amount: number;
  balance: number; // after it
  version: number;
  events: number;
  audits: number;
}

export interface StoredPointsAnswer {
  of: string;
  status: number;
}

export interface Place {
  generation: number;
  sequence: number;
}

export interface Generation extends Life {
  keptUpTo: number;
}

// The stream was made for the `made`th time, and its server was started for the `run`th time.
export interface Life {
  made: number;
  run: number;
}

export interface Stream extends Life {
  last: number;
  messages: Message[];
}

export interface Message {
  sequence: number;
  event: Event;
  acked: boolean; // by the durable consumer
}

// A relay, a deliverer, a firer, a granter or a sender.
export interface Worker {
  held: Held[]; // in the order in which they joined
  flight: Held[]; // what a claim has leased, beside rows in hand, before its answer is handled
  link: Link | null; // of relays
  paused: boolean; // of deliverers: the lane of their rows
}

export interface Held {
  event: Event;
  attempts: number;
  leased: boolean; // its token is the row's
  outcome: Outcome | null;
  seen?: object; // of orders: what the claim has read of the ledger and of the endpoint
}

export type Outcome =
  | { kind: "done"; place: Place | null }
  | { kind: "retry" }
  | { kind: "failed"; attempted: boolean }
  | { kind: "released"; later?: boolean } // with a delay
  | { kind: "forgotten" }; // only if the model is broken on purpose

// The progress of a relay on its connection to run `run` of the server.
export type Link =
  | { kind: "gone" } // crashed and not restarted yet
  | { kind: "looked"; run: number; recorded: Answers } // at what is recorded
  | { kind: "compares"; run: number; recorded: Answers; found: Found }
  | { kind: "publishes"; run: number; generation: number };

export type Answers = unknown[][]; // the rows that each of its statements has returned

export interface Found extends Life {
  last: number;
}

export interface Consumer {
  held: Delivered[];
}

export interface Delivered {
  event: Event;
  sequence: number; // 0 when the stream that delivered it is gone, so that no ack can reach it
  stored: boolean;
}

export interface History {
  faultsLeft: number;
  published: boolean[]; // some generation of the stream has stored it
  sent: boolean[]; // it was given to the channel
  fired: boolean[]; // a firer has worked on it without a failure
  unawaited: boolean[]; // the wait for its predecessor has ended without it
  accepted: boolean[]; // the receiver has accepted its order
  acknowledged: string[]; // requests that were answered with 200; "cancel e1" for a cancel
}

// Equal parts get equal numbers, so that keys stay short and each part is serialized once.
const numbers = new Map<string, number>();
const known = new WeakMap<object, number>();

export function numberOf(part: object): number {
  let number = known.get(part);
  if (number === undefined) {
    const text = JSON.stringify(part);
    number = numbers.get(text) ?? numbers.size;
    numbers.set(text, number);
    known.set(part, number);
  }
  return number;
}

// States that differ only in the order of equal processes are the same.
export function keyOf(
  { publishing, stream, consumers, sending, firing, granting, ordering, missing, history }: State,
): string {
  const tables = [publishing, sending, firing, granting, ordering].map((work) => work.tables);
  return [
    missing,
    [...tables, stream, history].map(numberOf),
    ...[publishing, { workers: consumers }, sending, firing, granting, ordering].map((
      { workers: processes },
    ) => processes.map(numberOf).sort((a, b) => a - b)),
  ].join(";");
}
