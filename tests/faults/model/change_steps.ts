// A change is committed with its event (entitlement/store_changes.ts), which may be handed over to a
// relay of the same process.
import { nameOf, withCrash, withFault, withHeld, withTables } from "./changes.ts";
import type { Step } from "./explore.ts";
import type { Model } from "./model.ts";
import { type Event, events, type State } from "./state.ts";

export async function changeSteps(
  state: State,
  { outbox }: Model,
  expected: Event[],
): Promise<Step<State>[]> {
  const { publishing, history } = state;
  const { tables, workers } = publishing;
  const steps: Step<State>[] = [];
  for (const event of expected) {
    if (!isNext(state, event)) continue;
    const label = `${events[event]?.name} is committed`;
    const put = (work: State["publishing"]): State => ({ ...state, publishing: work });
    const changed = await outbox.commit(tables, event, false);
    steps.push({ label, next: put(withTables(publishing, changed)) });
    for (const [at, { held, flight, link }] of workers.entries()) {
      if (held.length + flight.length > 0 || link?.kind !== "publishes") continue;
      const leased = await outbox.commit(tables, event, true);
      if (leased.returned.length === 0) continue; // an earlier one of its key is unfinished
      const work = withTables(publishing, leased);
      const who = `relay ${nameOf(at)}`;
      const next = put(withHeld(work, at, leased.returned));
      steps.push({ label: `${label}, leased to ${who}`, next });
      if (history.faultsLeft === 0) continue;
      const crashed = put(withCrash(work, at));
      steps.push({ label: `${label}, leased to ${who}, which crashes`, next: withFault(crashed) });
    }
  }
  return steps;
}

// Changes of one key are committed one after the other, because of its lock.
function isNext({ publishing }: State, event: Event): boolean {
  const { rows } = publishing.tables;
  const before = rows.findIndex((row, at) => !row && events[at]?.key === events[event]?.key);
  return before === event;
}
