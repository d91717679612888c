// The reconciliation (entitlement/reconciliation/run.ts) asks which events were not received, and
// later, when everything may have changed, republishes those that are missing.
import { classifier } from "../../../entitlement/reconciliation/check.ts";
import { withTables } from "./changes.ts";
import type { Step } from "./explore.ts";
import type { Habits, Model } from "./model.ts";
import { changesUnpublished, rules } from "./rules.ts";
import { type Event, events, type State } from "./state.ts";

export async function reconcileSteps(
  state: State,
  { outbox, habits }: Model,
): Promise<Step<State>[]> {
  const { publishing, missing, stream } = state;
  if (missing.length > 0) {
    const changed = await outbox.republishMissing(publishing.tables, missing);
    return [{
      label: `the reconciliation puts ${namesOf(missing)} back`,
      next: { ...state, missing: [], publishing: withTables(publishing, changed) },
      breaks: changesUnpublished(publishing.tables, changed.tables),
    }];
  }
  const found = findMissing(state, habits);
  if (found.length === 0) return [];
  const willCome = stream.messages.some(({ event, acked }) => !acked && found.includes(event));
  return [{
    label: `the reconciliation finds ${namesOf(found)} missing`,
    next: { ...state, missing: found },
    breaks: willCome ? rules.redelivered : undefined,
  }];
}

// Treats each message as delivered once: those that are not acked wait for redelivery.
function findMissing({ publishing, stream, sending }: State, habits: Habits): Event[] {
  const unsettled = habits.reportsUnsettled ? stream.messages.filter(({ acked }) => !acked) : [];
  const stateOf = classifier({
    missing: events.map(({ name }) => name).filter((_, event) => !sending.tables.processed[event]),
    dead: [],
    delivered_up_to: stream.last,
    undelivered: 0,
    settled_up_to: Math.min(stream.last + 1, ...unsettled.map(({ sequence }) => sequence)) - 1,
    unsettled: unsettled.length,
    remembered_since: "",
  }, 0);
  return events.flatMap(({ name, key, version }, event) => {
    const row = publishing.tables.rows[event];
    if (!row) return [];
    const [user_id = "", stock_keeping_unit = ""] = key.split(":");
    const { status, place } = row;
    const times = { occurred_at: "2026-01-02T03:04:05Z", published_seconds_ago: 1 };
    const named = { event_id: name, user_id, stock_keeping_unit, version };
    const state = stateOf({ ...named, ...times, status, stream_seq: place?.sequence ?? null });
    return state === "MISSING" ? [event] : [];
  });
}

function namesOf(some: Event[]): string {
  return some.map((event) => events[event]?.name).join(" and ");
}
