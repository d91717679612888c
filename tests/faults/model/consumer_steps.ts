// The durable consumer and the replicas that pull from it (shared/inbox/intake.ts): store, then ack.
import type { Model } from "./model.ts";
import { nameOf, withFault, withHeld, withTables } from "./changes.ts";
import type { Step } from "./explore.ts";
import { type Consumer, type Delivered, events, type State } from "./state.ts";

const mostInHand = 2;

export async function consumerSteps(state: State, model: Model): Promise<Step<State>[]> {
  const steps: Step<State>[] = [];
  for (const [at, { held }] of state.consumers.entries()) {
    steps.push(...deliverSteps(state, at));
    if (held.length === 0) continue;
    steps.push(...await storeSteps(state, at, model), ...ackSteps(state, at, model));
    if (state.history.faultsLeft > 0) {
      const next = withFault(holding(state, at, []));
      steps.push({ label: `consumer ${nameOf(at)} crashes`, next });
    }
  }
  return steps;
}

// A message that is not acked may be redelivered. If a replica still has it, that replica is slow.
function deliverSteps(state: State, at: number): Step<State>[] {
  const { stream, consumers, history } = state;
  const { held } = consumers[at] as Consumer;
  if (held.length === mostInHand) return [];
  return stream.messages.flatMap(({ sequence, event, acked }) => {
    if (acked) return [];
    const inHand = consumers.some((consumer) =>
      consumer.held.some((message) => message.sequence === sequence)
    );
    if (inHand && history.faultsLeft === 0) return [];
    const next = holding(state, at, [...held, { event, sequence, stored: false }]);
    const label = `${events[event]?.name} is delivered to consumer ${nameOf(at)}`;
    return [inHand ? { label: `${label} too`, next: withFault(next) } : { label, next }];
  });
}

// Stores one message, or all messages in hand with one statement.
async function storeSteps(
  state: State,
  at: number,
  { inbox, habits }: Model,
): Promise<Step<State>[]> {
  const { consumers, sending, history } = state;
  const { held } = consumers[at] as Consumer;
  const unstored = held.filter(({ stored, sequence }) =>
    !stored && (!habits.acksFirst || sequence === 0)
  );
  const different = new Set(unstored.map(({ event }) => event)).size === unstored.length;
  const batches = unstored.map((message) => [message]);
  if (unstored.length > 1 && different) batches.push(unstored);
  const steps: Step<State>[] = [];
  for (const batch of batches) {
    const names = batch.map(({ event }) => events[event]?.name).join(" and ");
    const received = batch.map(({ event }) => event);
    const rest = held.map((message) =>
      batch.includes(message) ? { ...message, stored: true } : message
    );
    // Either no deliverer offers to take the rows, or an idle one does.
    const idle = sending.workers.flatMap(({ held, flight }, worker) =>
      held.length + flight.length === 0 ? [worker] : []
    );
    for (const taker of [undefined, ...idle]) {
      const offered = taker !== undefined;
      const changed = await inbox.receive(sending.tables, received, offered, false);
      if (offered && changed.returned.length === 0) continue;
      const work = withTables(sending, changed);
      const next = offered ? withHeld(work, taker, changed.returned) : work;
      const to = offered ? `, leased to deliverer ${nameOf(taker)}` : "";
      const label = `consumer ${nameOf(at)} stores ${names}${to}`;
      steps.push({ label, next: holding({ ...state, sending: next }, at, rest) });
      if (history.faultsLeft === 0) continue;
      const half = await inbox.receive(sending.tables, received, offered, true);
      const crashed = holding({ ...state, sending: withTables(sending, half) }, at, []);
      steps.push({ label: `${label}, and crashes in the middle`, next: withFault(crashed) });
    }
  }
  return steps;
}

function ackSteps(state: State, at: number, { habits }: Model): Step<State>[] {
  const { stream, consumers, history } = state;
  const { held } = consumers[at] as Consumer;
  return held.flatMap((message) => {
    const { event, sequence, stored } = message;
    if (!stored && !(habits.acksFirst && sequence > 0)) return [];
    const without = held.filter((other) => other !== message);
    const detached = { ...message, sequence: 0 };
    const rest = stored ? without : held.map((other) => other === message ? detached : other);
    const label = `consumer ${nameOf(at)} acks ${events[event]?.name}`;
    const lost = holding(state, at, rest);
    if (sequence === 0) return [{ label: `${label} to nobody`, next: lost }];
    const messages = stream.messages.map((one) =>
      one.sequence === sequence ? { ...one, acked: true } : one
    );
    const acked = { label, next: { ...lost, stream: { ...stream, messages } } };
    if (history.faultsLeft === 0) return [acked];
    return [acked, { label: `${label}, but the ack is lost`, next: withFault(lost) }];
  });
}

function holding(state: State, at: number, held: Delivered[]): State {
  const sorted = held.toSorted((a, b) => a.event - b.event || a.sequence - b.sequence);
  return { ...state, consumers: state.consumers.with(at, { held: sorted }) };
}
