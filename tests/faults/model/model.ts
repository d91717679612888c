// The system that is explored: its numbers of processes, events and faults, and its steps.
import { brokerSteps } from "./broker_steps.ts";
import { changeSteps } from "./change_steps.ts";
import { consumerSteps } from "./consumer_steps.ts";
import { delivererSteps } from "./deliverer_steps.ts";
import type { System } from "./explore.ts";
import { firerSteps } from "./firer_steps.ts";
import { type FiringCalls, firingCalls } from "./firing_calls.ts";
import { granterSteps } from "./granter_steps.ts";
import { type InboxCalls, inboxCalls } from "./inbox_calls.ts";
import { type OrderCalls, orderCalls } from "./order_calls.ts";
import { orderSteps } from "./order_steps.ts";
import { type OutboxCalls, outboxCalls } from "./outbox_calls.ts";
import { type PointsCalls, pointsCalls, type RequestName } from "./points_calls.ts";
import type { Rewrite } from "./real_calls.ts";
import { reconcileSteps } from "./reconcile_steps.ts";
import { relaySteps } from "./relay_steps.ts";
import { brokenIn, isQuiet } from "./rules.ts";
import {
  type Event,
  events,
  keyOf,
  type OrderRow,
  type Orders,
  type OutboxRow,
  type State,
  type Worker,
} from "./state.ts";

export interface Scope {
  events: Event[];
  relays: number; // with 0 relays all events are published at the start, else none is committed
  consumers: number;
  deliverers: number;
  reminders?: Event[]; // of the small service; events with these numbers are their names
  firers?: number;
  reservations?: Event[]; // likewise
  granters?: number;
  asks?: RequestName[]; // of the balance that the reservations have, too
  orders?: Event[]; // of one endpoint, which wants all events
  known?: Event[]; // of these: an order is accepted that the ledger calls SUCCEEDED
  workers?: number; // that send them
  faults: number; // in total, of any kind
  reconciles?: boolean;
}

export interface Model extends AsyncDisposable {
  outbox: OutboxCalls;
  inbox: InboxCalls;
  firing: FiringCalls;
  granting: PointsCalls;
  sendingOrders: OrderCalls;
  habits: Habits;
}

export function openModel(
  { habits, rewrite }: { habits?: Partial<Habits>; rewrite?: Rewrite } = {},
): Model {
  const calls = {
    outbox: outboxCalls(rewrite),
    inbox: inboxCalls(rewrite),
    firing: firingCalls(rewrite),
    granting: pointsCalls(rewrite),
    sendingOrders: orderCalls(rewrite),
  };
  return {
    ...calls,
    habits: { ...usual, ...habits },
    async [Symbol.asyncDispose]() {
      for (const { real } of Object.values(calls)) await real[Symbol.asyncDispose]();
    },
  };
}

const usual: Habits = {
  checksInSteps: false,
  checksForLoss: true,
  looksAgain: true,
  acksFirst: false,
  startsAgain: true,
  reportsUnsettled: true,
  claimsBeside: true,
  numbersClaims: true,
  blocksAfterLoss: true,
  awaitsFailures: true,
  putsOff: false,
  resumesLanes: true,
  forgetsRows: false,
  endsLostProbes: true,
};

export function callsOf({ outbox, inbox, firing, granting, sendingOrders }: Model): number {
  return [outbox, inbox, firing, granting, sendingOrders].reduce(
    (sum, { real }) => sum + real.count,
    0,
  );
}

// Behaviour that depends on the code and not on a statement.
export interface Habits {
  checksInSteps: boolean; // whether other steps may happen during the check for loss
  checksForLoss: boolean;
  looksAgain: boolean; // every few seconds
  acksFirst: boolean;
  startsAgain: boolean; // whether a crashed relay restarts
  reportsUnsettled: boolean; // whether the receiver reports what may be redelivered
  claimsBeside: boolean; // whether a worker claims while it has rows in hand
  numbersClaims: boolean; // whether a claim that began before a line went back may not join it
  blocksAfterLoss: boolean; // whether a line whose next row has lost its lease goes back
  awaitsFailures: boolean; // whether a line goes on after a failure only when it is settled
  putsOff: boolean; // whether the channel may put off a row, which pauses its lane
  resumesLanes: boolean; // whether the pause of a lane ends
  forgetsRows: boolean; // whether a lane that pauses forgets the rows that wait for it
  endsLostProbes: boolean; // whether a probe ends whose outcome was not noted
}

export function systemOf(model: Model, scope: Scope): System<State> {
  return {
    initial: initialState(scope),
    keyOf,
    isQuiet: (state) => isQuiet(state, scope),
    brokenIn: (state) => brokenIn(state, scope),
    stepsFrom: async (state) => [
      ...await changeSteps(state, model, scope.events),
      ...await relaySteps(state, model),
      ...scope.relays > 0 ? brokerSteps(state) : [],
      ...await consumerSteps(state, model),
      ...await delivererSteps(state, model),
      ...scope.reminders ? await firerSteps(state, model, scope.reminders) : [],
      ...scope.reservations ? await granterSteps(state, model, scope) : [],
      ...scope.orders ? await orderSteps(state, model, scope) : [],
      ...scope.reconciles ? await reconcileSteps(state, model) : [],
    ],
  };
}

function initialState(scope: Scope): State {
  const isPublished = scope.relays === 0;
  const none = events.map(() => false);
  return {
    publishing: {
      workers: idle(scope.relays),
      tables: {
        rows: events.map((_, event) =>
          isPublished && scope.events.includes(event) ? published(event) : null
        ),
        generations: isPublished ? [{ made: 1, run: 1, keptUpTo: 0 }] : [],
      },
    },
    stream: {
      made: 1,
      run: 1,
      last: isPublished ? scope.events.length : 0,
      messages: isPublished
        ? scope.events.map((event) => ({ sequence: event + 1, event, acked: false }))
        : [],
    },
    consumers: Array.from({ length: scope.consumers }, () => ({ held: [] })),
    sending: {
      workers: idle(scope.deliverers),
      tables: { rows: events.map(() => null), processed: none },
    },
    firing: { workers: idle(scope.firers ?? 0), tables: { rows: events.map(() => null) } },
    granting: {
      workers: idle(scope.granters ?? 0),
      tables: { rows: events.map(() => null), transactions: [], roots: [], answers: [] },
    },
    ordering: { workers: idle(scope.workers ?? 0), tables: ordersOf(scope) },
    missing: [],
    history: {
      faultsLeft: scope.faults,
      published: none.map((_, event) => isPublished && scope.events.includes(event)),
      sent: none,
      fired: none,
      unawaited: none,
      accepted: none.map((_, event) => scope.known?.includes(event) === true),
      acknowledged: [],
    },
  };
}

function ordersOf({ known = [] }: Scope): Orders {
  const isKnown = events.map((_, event) => known.includes(event));
  return {
    rows: isKnown.map((known) => known ? accepted : null),
    processed: isKnown,
    ledger: isKnown.map((known) => known ? "SUCCEEDED" : null),
    endpoints: [
      { state: "ACTIVE", draining: false, failures: 0, probe: null, probeWaits: false },
    ],
  };
}

const accepted: OrderRow = {
  ...{ status: "PENDING", attempts: 0, waits: false, lease: "none", awaitsPredecessor: false },
};

function published(event: Event): OutboxRow {
  const place = { generation: 1, sequence: event + 1 };
  return { status: "PUBLISHED", attempts: 0, waits: false, lease: "none", place };
}

function idle(count: number): Worker[] {
  return Array.from({ length: count }, () => ({ held: [], flight: [], link: null, paused: false }));
}
