// Events become orders (notification/endpoints/fan_out.ts), which workers send to one endpoint. It may
// be down: then its orders are parked, one of them probes it, and they return when it is up.
import { nameOf, withCrash, withFault, withFlag, withRow, withTables } from "./changes.ts";
import type { Step } from "./explore.ts";
import type { Model, Scope } from "./model.ts";
import type { Keeping, Reception } from "./order_calls.ts";
import type { Changed } from "./real_calls.ts";
import { comesTooEarly, rules } from "./rules.ts";
import { type Event, events, numberOf, type Orders, type State } from "./state.ts";
import { type Side, type Turn, workerSteps, workSteps } from "./worker_steps.ts";

export async function orderSteps(
  state: State,
  model: Model,
  scope: Scope,
): Promise<Step<State>[]> {
  const { ordering, history } = state;
  const side: Side<Orders> = {
    name: "worker",
    work: ordering,
    calls: model.sendingOrders,
    habits: model.habits,
    mayClaim: () => true,
    crashed: null,
    put: (work) => ({ ...state, ordering: work }),
  };
  const steps = [
    ...await receiveSteps(state, side, model, scope),
    ...await workerSteps(side, history.faultsLeft),
    ...await endpointSteps(side, model),
    ...endOfWaiting(state),
  ];
  for (const at of ordering.workers.keys()) {
    const turns: Turn[] = [];
    steps.push(...workSteps(side, at, (turn) => {
      turns.push(turn);
      return [];
    }));
    for (const turn of turns) steps.push(...await sendSteps(state, model, turn));
    steps.push(...await halfSettled(state, side, at, model));
  }
  return steps;
}

// An event may be received again. Only what changes something is a step.
async function receiveSteps(
  { ordering: { tables }, history }: State,
  { work, put }: Side<Orders>,
  { sendingOrders }: Model,
  { orders = [] }: Scope,
): Promise<Step<State>[]> {
  const steps: Step<State>[] = [];
  for (const event of orders) {
    const label = `${events[event]?.name} is received`;
    const changed = await sendingOrders.receive(tables, event, false);
    if (isSame(tables, changed.tables)) continue;
    steps.push({ label, next: put(withTables(work, changed)) });
    if (history.faultsLeft === 0) continue;
    const half = await sendingOrders.receive(tables, event, true);
    const next = withFault(put(withTables(work, half)));
    steps.push({ label: `${label} by a process that crashes in the middle`, next });
  }
  return steps;
}

const receptions: Reception[] = ["is down", "accepts it, but answers too late", "away"];

// As everywhere, an expired lease does not prevent a send.
async function sendSteps(
  { ordering: { tables }, history }: State,
  { sendingOrders }: Model,
  { row, name, who, ends }: Turn,
): Promise<Step<State>[]> {
  const { event, leased } = row;
  const isOver = (earlier: Event) =>
    history.unawaited[event] === true || tables.rows[earlier]?.status === "FAILED";
  const breaks = leased && tables.ledger[event] === "SUCCEEDED"
    ? rules.sentAgain
    : comesTooEarly(event, history.accepted, isOver)
    ? rules.orderOrder
    : undefined;
  const accepted = withFlag(history.accepted, event);
  const steps: Step<State>[] = [];
  for (
    const reception of history.faultsLeft > 0
      ? ["accepts it" as const, ...receptions]
      : ["accepts it" as const]
  ) {
    const { outcome, isSent } = await sendingOrders.work(row, reception);
    const ended = ends(outcome);
    if (!isSent) return [{ label: `${who} does not send ${name}`, next: ended }];
    const next = reception.startsWith("accepts")
      ? { ...ended, history: { ...history, accepted } }
      : ended;
    const label = reception === "away"
      ? `${who} can't reach the sender with ${name}`
      : `${who} sends ${name}, and the endpoint ${reception}`;
    steps.push({ label, next: reception === "accepts it" ? next : withFault(next), breaks });
  }
  return steps;
}

// It crashes before it writes the ledger, which makes no difference if that is one statement with the
// rest, or after that, before it notes what the outcome says about the endpoint.
async function halfSettled(
  { history }: State,
  { work, put }: Side<Orders>,
  at: number,
  { sendingOrders }: Model,
): Promise<Step<State>[]> {
  const steps: Step<State>[] = [];
  if (history.faultsLeft === 0) return steps;
  for (const row of work.workers[at]?.held ?? []) {
    if (!row.outcome) continue;
    for (
      const [before, killedBefore] of [
        ["writes the ledger", /insert into idempo_ledger/],
        ["notes the health", /select endpoint_id, state, failures/],
      ] as const
    ) {
      const changed = await sendingOrders.settle(work.tables, row, killedBefore);
      if (isSame(work.tables, changed.tables)) continue;
      const next = withFault(put(withCrash(withTables(work, changed), at)));
      const label = `worker ${nameOf(at)} settles ${
        events[row.event]?.name
      } as ${row.outcome.kind}`;
      steps.push({ label: `${label} and crashes before it ${before}`, next });
    }
  }
  return steps;
}

// keepEndpoints, in any replica.
async function endpointSteps(
  { work, put, habits }: Side<Orders>,
  { sendingOrders }: Model,
): Promise<Step<State>[]> {
  const { tables } = work;
  const [endpoint] = tables.endpoints;
  const steps: Step<State>[] = [];
  const changes: [Keeping, label: string][] = [
    ["park", "waiting orders are parked"],
    ["probe", "the oldest order is let through as a probe"],
    ...habits.endsLostProbes ? [["endLostProbe", "a lost probe ends"] as [Keeping, string]] : [],
    ["unpark", "parked orders return"],
    ["endDraining", "the draining ends"],
  ];
  for (const [what, label] of changes) {
    const changed: Changed<Orders, unknown> = await sendingOrders.keepEndpoint(tables, what);
    if (isSame(tables, changed.tables)) continue;
    steps.push({ label, next: put(withTables(work, changed)) });
  }
  if (endpoint?.probeWaits) {
    const endpoints = [{ ...endpoint, probeWaits: false }];
    const next = put({ ...work, tables: { ...tables, endpoints } });
    steps.push({ label: "the next probe comes due", next });
  }
  return steps;
}

function endOfWaiting(state: State): Step<State>[] {
  const { ordering, history } = state;
  return ordering.tables.rows.flatMap((row, event) => {
    if (!row?.waits || !row.awaitsPredecessor) return [];
    const next = {
      ...state,
      ordering: withRow(ordering, event, { waits: false }),
      history: { ...history, unawaited: withFlag(history.unawaited, event) },
    };
    return [{ label: `${events[event]?.name} has waited long enough for its predecessor`, next }];
  });
}

function isSame(one: Orders, other: Orders): boolean {
  return numberOf(one) === numberOf(other);
}
