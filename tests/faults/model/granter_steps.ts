// Reservations are accepted, cancelled and carried out (entitlement/points), while the same balance is
// changed by requests. Carrying one out is one commit with its DONE, so nothing is settled after it.
import { withCrash, withFault, withHeld, withRow, withTables } from "./changes.ts";
import type { Step } from "./explore.ts";
import { afterFailure, finish } from "./hand.ts";
import type { Model, Scope } from "./model.ts";
import type { RequestName } from "./points_calls.ts";
import type { Changed } from "./real_calls.ts";
import { cancelOf, cancelsWrongly, changesWithoutLease } from "./rules.ts";
import { events, numberOf, type Points, type State, type Worker } from "./state.ts";
import { type Side, type Turn, workerSteps, workSteps } from "./worker_steps.ts";

export async function granterSteps(
  state: State,
  model: Model,
  scope: Scope,
): Promise<Step<State>[]> {
  const { granting, history } = state;
  const side: Side<Points> = {
    name: "granter",
    work: granting,
    calls: model.granting,
    habits: model.habits,
    mayClaim: () => true,
    crashed: null,
    put: (work) => ({ ...state, granting: work }),
  };
  const steps = await reservationSteps(state, side, model, scope);
  steps.push(...await requestSteps(state, side, model, scope));
  steps.push(...await workerSteps(side, history.faultsLeft));
  for (const at of granting.workers.keys()) {
    const turns: Turn[] = [];
    steps.push(...workSteps(side, at, (turn) => {
      turns.push(turn);
      return [];
    }));
    for (const turn of turns) {
      steps.push(...await carryOutSteps(state, side, model, scope.asks ?? [], at, turn));
    }
  }
  return steps;
}

// Each is accepted once. It may be cancelled at any time, and again.
async function reservationSteps(
  { granting: { tables }, history }: State,
  { work, put }: Side<Points>,
  { granting }: Model,
  { reservations = [] }: Scope,
): Promise<Step<State>[]> {
  const steps: Step<State>[] = [];
  for (const event of reservations) {
    const name = events[event]?.name;
    const row = tables.rows[event];
    if (row?.early) {
      const next = put(withRow(work, event, { early: false }));
      steps.push({ label: `the time of ${name} comes`, next });
    }
    if (!row) {
      for (const early of [true, false]) {
        const changed = await granting.reserve(tables, event, early);
        const label = `${name} is reserved, ${early ? "for later" : "and is due"}`;
        steps.push({ label, next: put(withTables(work, changed)) });
      }
      continue;
    }
    if (row.status === "FAILED") {
      const next = put(withTables(work, await granting.sendBack(tables, event)));
      steps.push({ label: `an operator sends ${name} back`, next });
    }
    const changed = await granting.cancel(tables, event);
    if (isSame(tables, changed.tables)) continue;
    const next = put(withTables(work, changed));
    steps.push({
      label: `${name} is cancelled`,
      next: acknowledged(next, history, cancelOf(event)),
      breaks: cancelsWrongly(event, tables, changed.tables),
    });
  }
  return steps;
}

function acknowledged(state: State, history: State["history"], what: string): State {
  if (history.acknowledged.includes(what)) return state;
  return {
    ...state,
    history: { ...history, acknowledged: [...history.acknowledged, what].sort() },
  };
}

// Clients repeat their requests, also after the answer has expired.
async function requestSteps(
  { granting: { tables }, history }: State,
  { work, put }: Side<Points>,
  { granting }: Model,
  { asks = [] }: Scope,
): Promise<Step<State>[]> {
  const steps: Step<State>[] = [];
  for (const request of asks) {
    const changed = await granting.ask(tables, request);
    if (!isSame(tables, changed.tables)) {
      const next = put(withTables(work, changed));
      steps.push({
        label: `the ${request} is requested, and answered with ${changed.returned}`,
        next: changed.returned === 200 ? acknowledged(next, history, request) : next,
      });
    }
    if (!tables.answers.some(({ of }) => of === request)) continue;
    const answers = tables.answers.filter(({ of }) => of !== request);
    const expired = put({ ...work, tables: { ...tables, answers } });
    steps.push({ label: `the answer to the ${request} expires`, next: expired });
  }
  return steps;
}

// A due reservation is carried out, or the granter finds that it has lost it.
async function carryOutSteps(
  state: State,
  { work, put }: Side<Points>,
  { granting }: Model,
  asks: RequestName[],
  at: number,
  { row, name, who, ends }: Turn,
): Promise<Step<State>[]> {
  const { tables } = work;
  const ended = (changed: Changed<Points, string | undefined>): State => {
    const { held } = work.workers[at] as Worker;
    const rest = changed.returned === "done"
      ? held.filter((one) => one !== row)
      : finish(held, row, changed.returned === "retry" ? afterFailure(row) : { kind: "released" });
    return put(withTables(withHeld(work, at, rest), changed));
  };
  const changed = await granting.carryOut(tables, row, {});
  const lost = row.leased ? "" : ", its lease lost,";
  const steps: Step<State>[] = [{
    label: `${who}${lost} carries ${name} out`,
    next: ended(changed),
    breaks: changesWithoutLease([row], tables, changed.tables),
  }];
  for (const meanwhile of asks.slice(0, 1)) {
    const both = await granting.carryOut(tables, row, { meanwhile });
    if (isSame(both.tables, changed.tables)) continue; // a lock has kept the request waiting
    steps.push({ label: `${who} carries ${name} out beside the ${meanwhile}`, next: ended(both) });
  }
  if (state.history.faultsLeft === 0) return steps;
  const killed = await granting.carryOut(tables, row, { killed: true });
  const crashed = put(withCrash(withTables(work, killed), at));
  return [
    ...steps,
    { label: `${who} can't carry ${name} out`, next: withFault(ends(afterFailure(row))) },
    { label: `${who} crashes while it carries ${name} out`, next: withFault(crashed) },
  ];
}

function isSame(one: Points, other: Points): boolean {
  return numberOf(one) === numberOf(other);
}
