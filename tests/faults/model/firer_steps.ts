// The small service (tests/reminders): a reminder is created, and fires when its time has come. There
// is no work before the statement that marks it as FIRED and announces its event.
import { nameOf, withCrash, withFault, withFlag, withRow, withTables } from "./changes.ts";
import type { Step } from "./explore.ts";
import { afterFailure } from "./hand.ts";
import type { Model } from "./model.ts";
import { comesTooEarly, rules } from "./rules.ts";
import { type Event, events, type Reminders, type State } from "./state.ts";
import { type Side, workerSteps, workSteps } from "./worker_steps.ts";

export async function firerSteps(
  state: State,
  model: Model,
  reminders: Event[],
): Promise<Step<State>[]> {
  const { firing, history } = state;
  const side: Side<Reminders> = {
    name: "firer",
    work: firing,
    calls: model.firing,
    habits: model.habits,
    mayClaim: () => true,
    crashed: null,
    put: (work) => ({ ...state, firing: work }),
  };
  const steps = await createSteps(state, side, model, reminders);
  steps.push(...timeComes(side), ...await workerSteps(side, history.faultsLeft));
  for (const at of firing.workers.keys()) {
    steps.push(...fireSteps(state, at, side), ...await halfSettled(state, at, side));
  }
  return steps;
}

// The reminders of a key are created in the order of their times.
async function createSteps(
  { firing: { tables } }: State,
  { work, put }: Side<Reminders>,
  { firing }: Model,
  reminders: Event[],
): Promise<Step<State>[]> {
  const steps: Step<State>[] = [];
  for (const event of reminders) {
    const before = reminders.filter((one) => one < event && keyOf(one) === keyOf(event));
    const rows = before.map((one) => tables.rows[one]);
    if (tables.rows[event] || rows.includes(null)) continue;
    for (const early of rows.some((row) => row?.early) ? [true] : [true, false]) {
      const changed = await firing.create(tables, event, early);
      steps.push({
        label: `${events[event]?.name} is created, ${early ? "for later" : "and is due"}`,
        next: put(withTables(work, changed)),
      });
    }
  }
  return steps;
}

function timeComes({ work, put }: Side<Reminders>): Step<State>[] {
  const { rows } = work.tables;
  return rows.flatMap((row, event) => {
    const first = rows.findIndex((one, at) => one?.early && keyOf(at) === keyOf(event));
    if (!row?.early || first !== event) return [];
    const next = put(withRow(work, event, { early: false }));
    return [{ label: `the time of ${events[event]?.name} comes`, next }];
  });
}

function fireSteps(state: State, at: number, side: Side<Reminders>): Step<State>[] {
  const { firing, history } = state;
  return workSteps(side, at, ({ row, name, who, ends }) => {
    const { event } = row;
    const isOver = (earlier: Event) => firing.tables.rows[earlier]?.status === "FAILED";
    const done = ends({ kind: "done", place: null });
    const fired = withFlag(history.fired, event);
    const steps: Step<State>[] = [{
      label: `${who} fires ${name}`,
      next: fired === history.fired ? done : { ...done, history: { ...history, fired } },
      breaks: comesTooEarly(event, history.fired, isOver) ? rules.fireOrder : undefined,
    }];
    if (history.faultsLeft === 0) return steps;
    const next = withFault(ends(afterFailure(row)));
    return [...steps, { label: `${who} can't fire ${name}`, next }];
  });
}

// It crashes before it announces the event, which makes no difference if that is one statement with
// the rest.
async function halfSettled(
  state: State,
  at: number,
  { work, calls }: Side<Reminders>,
): Promise<Step<State>[]> {
  const steps: Step<State>[] = [];
  if (state.history.faultsLeft === 0) return steps;
  for (const row of work.workers[at]?.held ?? []) {
    if (row.outcome?.kind !== "done") continue;
    const changed = await calls.settle(work.tables, row, /insert into outbox_events/);
    const crashed = withCrash(withTables(work, changed), at);
    const label = `firer ${nameOf(at)} crashes before it announces ${events[row.event]?.name}`;
    steps.push({ label, next: withFault({ ...state, firing: crashed }) });
  }
  return steps;
}

function keyOf(event: Event): string | undefined {
  return events[event]?.key;
}
