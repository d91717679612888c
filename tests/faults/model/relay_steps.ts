// A relay (shared/outbox/relay.ts) connects, compares the stream with what it recorded, and then
// publishes its claimed rows.
import type { Model } from "./model.ts";
import { nameOf, withFault, withFlag, withWorker } from "./changes.ts";
import type { Step } from "./explore.ts";
import { afterFailure } from "./hand.ts";
import { comesTooEarly, rules } from "./rules.ts";
import {
  type Link,
  numberOf,
  type Outbox,
  type Outcome,
  type State,
  type Stream,
  type Worker,
} from "./state.ts";
import { type Side, workerSteps, workSteps } from "./worker_steps.ts";

export async function relaySteps(state: State, model: Model): Promise<Step<State>[]> {
  const { publishing, history } = state;
  const side: Side<Outbox> = {
    name: "relay",
    work: publishing,
    calls: model.outbox,
    habits: model.habits,
    mayClaim: ({ link }) => link?.kind === "publishes",
    crashed: model.habits.startsAgain ? null : { kind: "gone" },
    put: (work) => ({ ...state, publishing: work }),
  };
  const steps = await workerSteps(side, history.faultsLeft);
  for (const at of publishing.workers.keys()) {
    steps.push(...await linkSteps(state, at, model), ...publishSteps(state, at, side));
  }
  return steps;
}

async function linkSteps(state: State, at: number, model: Model): Promise<Step<State>[]> {
  const { held, flight, link } = state.publishing.workers[at] as Worker;
  const { run } = state.stream;
  const who = `relay ${nameOf(at)}`;
  switch (link?.kind) {
    case "gone":
      return [];
    case "looked":
      return link.run === run
        ? [{ label: `${who} looks at the stream`, next: asksStream(state, at, link) }]
        : [{ label: `${who} is cut off`, next: withLink(state, at, null) }];
    case "compares":
      return await repairSteps(state, at, link, model);
    case "publishes":
      if (link.run === run) return await putBackSteps(state, at, model);
  }
  return held.length + flight.length === 0 ? await connectSteps(state, at, model) : [];
}

// The first work of a connection (repairLostEvents), in its order: it reads the table, then the
// stream, and then changes the table.
async function connectSteps(state: State, at: number, model: Model): Promise<Step<State>[]> {
  const who = `relay ${nameOf(at)}`;
  const { run } = state.stream;
  if (!model.habits.checksForLoss) {
    const blind: Link = { kind: "publishes", run, generation: 1 };
    return [{ label: `${who} connects`, next: withLink(state, at, blind) }];
  }
  const { returned: recorded } = await model.outbox.look(state.publishing.tables);
  const looked: Looked = { kind: "looked", run, recorded };
  const next = withLink(state, at, looked);
  if (model.habits.checksInSteps) {
    return [{ label: `${who} connects and looks at what is recorded`, next }];
  }
  const asked = asksStream(next, at, looked);
  const { link } = asked.publishing.workers[at] as Worker;
  return await repairSteps(asked, at, link as Compares, model);
}

type Looked = Extract<Link, { kind: "looked" }>;
type Compares = Extract<Link, { kind: "compares" }>;

function asksStream(state: State, at: number, looked: Looked): State {
  const { made, run, last } = state.stream;
  return withLink(state, at, { ...looked, kind: "compares", found: { made, run, last } });
}

async function repairSteps(
  state: State,
  at: number,
  { run, recorded, found }: Compares,
  { outbox, habits }: Model,
): Promise<Step<State>[]> {
  const { publishing, history } = state;
  const who = `relay ${nameOf(at)}`;
  const steps: Step<State>[] = [];
  const mayBeKilled = history.faultsLeft > 0 && habits.startsAgain;
  for (const killed of mayBeKilled ? [false, true] : [false]) {
    const { tables, returned } = await outbox.repair(publishing.tables, recorded, found, killed);
    const link: Link | null = returned === undefined
      ? null
      : { kind: "publishes", run, generation: returned };
    const next = withLink({ ...state, publishing: { ...publishing, tables } }, at, link);
    steps.push(
      killed
        ? { label: `${who} crashes before it republishes what is lost`, next: withFault(next) }
        : { label: `${who} compares, and republishes what is lost`, next },
    );
  }
  return steps;
}

// watchStream, every few seconds.
async function putBackSteps(
  state: State,
  at: number,
  { outbox, habits }: Model,
): Promise<Step<State>[]> {
  const { publishing } = state;
  if (!habits.checksForLoss || !habits.looksAgain) return [];
  const { tables } = await outbox.republishLost(publishing.tables);
  if (numberOf(tables) === numberOf(publishing.tables)) return [];
  const next = { ...state, publishing: { ...publishing, tables } };
  return [{ label: `relay ${nameOf(at)} republishes what was settled late`, next }];
}

function withLink(state: State, at: number, link: Link | null): State {
  const { publishing } = state;
  const worker = publishing.workers[at] as Worker;
  return { ...state, publishing: withWorker(publishing, at, { ...worker, link }) };
}

// publishRow and openPublisher. A worker may stall between its last check of the lease and the
// publish, so an expired lease does not prevent a publish here.
function publishSteps(state: State, at: number, side: Side<Outbox>): Step<State>[] {
  const { publishing, stream, history } = state;
  const { link } = publishing.workers[at] as Worker;
  if (link?.kind !== "publishes") return [];
  return workSteps(side, at, ({ row, name, who, ends }) => {
    const { event } = row;
    if (link.run !== stream.run) {
      return [{ label: `${who} can't publish ${name}`, next: ends({ kind: "released" }) }];
    }
    const isOver = (earlier: number) => publishing.tables.rows[earlier]?.status === "FAILED";
    const breaks = comesTooEarly(event, history.published, isOver) ? rules.publishOrder : undefined;
    const published = withFlag(history.published, event);
    const steps: Step<State>[] = [];
    for (const stored of store(stream, event, history.faultsLeft)) {
      const place = { generation: link.generation, sequence: stored.sequence };
      const takes = (outcome: Outcome) => {
        const next = {
          ...ends(outcome),
          stream: stored.stream,
          history: published === history.published ? history : { ...history, published },
        };
        return stored.again ? withFault(next) : next;
      };
      const again = stored.again ? " again, as the duplicate window is over" : "";
      steps.push({
        label: `${who} publishes ${name}${again}`,
        next: takes({ kind: "done", place }),
        breaks,
      });
      if (history.faultsLeft === 0 || stored.again) continue;
      const lost = `${who} publishes ${name}, and its PubAck is lost`;
      steps.push(
        { label: lost, next: withFault(takes({ kind: "released" })), breaks },
        { label: `${lost} alone`, next: withFault(takes(afterFailure(row))), breaks },
      );
    }
    if (history.faultsLeft > 0) {
      const next = withFault(ends(afterFailure(row)));
      steps.push({ label: `the stream refuses ${name} of ${who}`, next });
    }
    return steps;
  });
}

// The stream stores a message; a duplicate is acknowledged with the sequence of the first one.
function store(
  stream: Stream,
  event: number,
  faultsLeft: number,
): { stream: Stream; sequence: number; again: boolean }[] {
  const first = stream.messages.find((message) => message.event === event);
  const sequence = stream.last + 1;
  const appended = {
    ...stream,
    last: sequence,
    messages: [...stream.messages, { sequence, event, acked: false }],
  };
  if (!first) return [{ stream: appended, sequence, again: false }];
  const recognised = { stream, sequence: first.sequence, again: false };
  return faultsLeft > 0 ? [recognised, { stream: appended, sequence, again: true }] : [recognised];
}
