// A deliverer (notification/deliver_notifications.ts) sends its claimed rows through the channel.
import type { Model } from "./model.ts";
import { nameOf, withFault, withFlag, withHeld, withPause, withRow } from "./changes.ts";
import type { Step } from "./explore.ts";
import { afterFailure, finish, nextOfEachKey } from "./hand.ts";
import { comesTooEarly, rules } from "./rules.ts";
import { events, type Inbox, type Outcome, type State, type Worker } from "./state.ts";
import { type Side, workerSteps, workSteps } from "./worker_steps.ts";

export async function delivererSteps(state: State, model: Model): Promise<Step<State>[]> {
  const { sending, history } = state;
  const side: Side<Inbox> = {
    name: "deliverer",
    work: sending,
    calls: model.inbox,
    habits: model.habits,
    mayClaim: ({ paused }) => !paused,
    crashed: null,
    put: (work) => ({ ...state, sending: work }),
  };
  const steps = await workerSteps(side, history.faultsLeft);
  for (const at of sending.workers.keys()) {
    steps.push(...(sending.workers[at]?.paused ? pauseSteps : sendSteps)(state, at, side));
  }
  return [...steps, ...endOfWaiting(state)];
}

// sendInTime. As with the relay, an expired lease does not prevent it.
function sendSteps(state: State, at: number, side: Side<Inbox>): Step<State>[] {
  const { sending, history } = state;
  return workSteps(side, at, ({ row, name, who, ends }) => {
    const { event } = row;
    const isOver = (earlier: number) =>
      history.unawaited[event] === true || sending.tables.rows[earlier]?.status === "FAILED";
    const breaks = comesTooEarly(event, history.sent, isOver) ? rules.sendOrder : undefined;
    const sent = withFlag(history.sent, event);
    const taken = (outcome: Outcome): State => ({
      ...ends(outcome),
      history: sent === history.sent ? history : { ...history, sent },
    });
    const steps: Step<State>[] = [
      { label: `${who} sends ${name}`, next: taken({ kind: "done", place: null }), breaks },
    ];
    if (history.faultsLeft === 0) return steps;
    const failed = afterFailure(row);
    if (side.habits.putsOff) {
      const later = ends({ kind: "released", later: true });
      const next = withFault({ ...later, sending: withPause(later.sending, at, true) });
      steps.push({ label: `the channel puts ${name} of ${who} off`, next });
    }
    steps.push(
      { label: `the channel refuses ${name} of ${who}`, next: withFault(ends(failed)) },
      { label: `${who} sends ${name}, answered too late`, next: withFault(taken(failed)), breaks },
    );
    return steps;
  });
}

// The rows that wait for the paused lane go back, and claims leave them out until the lane resumes.
function pauseSteps(state: State, at: number, { habits }: Side<Inbox>): Step<State>[] {
  const { sending } = state;
  const { held } = sending.workers[at] as Worker;
  const who = `deliverer ${nameOf(at)}`;
  const outcome: Outcome = { kind: habits.forgetsRows ? "forgotten" : "released" };
  const steps = nextOfEachKey(held, habits.awaitsFailures).map((row) => ({
    label: `${who} ${habits.forgetsRows ? "forgets" : "gives back"} ${events[row.event]?.name}`,
    next: { ...state, sending: withHeld(sending, at, finish(held, row, outcome)) },
  }));
  if (!habits.resumesLanes) return steps;
  const resumed = { ...state, sending: withPause(sending, at, false) };
  return [...steps, { label: `the lane of ${who} resumes`, next: resumed }];
}

function endOfWaiting(state: State): Step<State>[] {
  const { sending, history } = state;
  return sending.tables.rows.flatMap((row, event) => {
    if (!row?.waits || !row.awaitsPredecessor) return [];
    const next = {
      ...state,
      sending: withRow(sending, event, { waits: false }),
      history: { ...history, unawaited: withFlag(history.unawaited, event) },
    };
    return [{ label: `${events[event]?.name} has waited long enough for its predecessor`, next }];
  });
}
