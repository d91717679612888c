// The broker restarts and has lost its latest messages, or nothing, or its whole disk. All connections
// end.
import { withFault } from "./changes.ts";
import type { Step } from "./explore.ts";
import type { State } from "./state.ts";

export function brokerSteps(state: State): Step<State>[] {
  const { stream, consumers, history } = state;
  if (history.faultsLeft === 0) return [];
  const { made, run, last, messages } = stream;
  const detached = consumers.map(({ held }) => ({
    held: held.map((message) => ({ ...message, sequence: 0 })),
  }));
  const startsWith = (kept: number, inStream: number) =>
    withFault({
      ...state,
      consumers: detached,
      stream: {
        made: inStream,
        run: run + 1,
        last: kept,
        messages: messages.filter(({ sequence }) => sequence <= kept),
      },
    });
  const restarts = Array.from({ length: last + 1 }, (_, kept) => ({
    label: `the broker restarts, its stream ends at ${kept} of ${last}`,
    next: startsWith(kept, made),
  }));
  return last === 0
    ? restarts
    : [...restarts, { label: "the broker loses its disk", next: startsWith(0, made + 1) }];
}
