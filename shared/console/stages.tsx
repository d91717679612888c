import type { Child } from "hono/jsx";
import type { QueueLooks, ServiceStatus } from "../operators/looks.ts";
import type { Backlog } from "../queue/backlog.ts";
import type { Fact, Tone } from "./layout.tsx";
import type { Samples } from "./samples.ts";
import { age, count, whole } from "./text.ts";

// The stages that an event passes in a service, and the problems there, as the service's status and
// its counters show them.

export interface Stage {
  title: string;
  about: string;
  state: { tone: Tone; word: string };
  flow?: { unit: string; rate: number | undefined; rates: (number | undefined)[] };
  facts?: Fact[];
}

interface FlowParts<Counter> extends Pick<Stage, "title" | "about" | "facts"> {
  counter: Counter;
  unit: string;
  trouble?: string | undefined; // shown as the state, if there is any
}

// A stage whose rate a counter shows.
export function flowStage<Counter extends string>(
  rates: Samples<Counter>,
  { counter, unit, trouble, ...stage }: FlowParts<Counter>,
): Stage {
  const rate = rates.rate(counter);
  return {
    ...stage,
    state: trouble ? { tone: "bad", word: trouble } : flowState(rate),
    flow: { unit, rate, rates: rates.rates(counter) },
  };
}

function flowState(rate: number | undefined): Stage["state"] {
  if (rate === undefined) return { tone: "muted", word: "no data" };
  return rate > 0 ? { tone: "good", word: "flowing" } : { tone: "muted", word: "idle" };
}

// The stage at which the rows of a queue wait.
export function queueStage<Status extends ServiceStatus>(
  { title, noun, until, layers, lateSeconds, of }: QueueLooks<Status>,
  status: Status | undefined,
): Stage {
  const queue = status && of(status);
  const dead = status?.errors?.filter(({ layer }) => layers.includes(layer));
  return {
    title,
    about: `${noun.charAt(0).toUpperCase()}${noun.slice(1)}s waiting ${until}.`,
    state: queueState(queue, lateSeconds),
    facts: [
      ["waiting", queue ? whole(queue.waiting) : "–"],
      ["oldest", age(queue?.oldest_waiting_seconds ?? null)],
      ["dead letters", dead ? whole(sumOf(dead)) : "–"],
    ],
  };
}

function queueState(queue: Backlog | undefined, lateSeconds: number): Stage["state"] {
  if (!queue) return { tone: "muted", word: "unknown" };
  if ((queue.oldest_waiting_seconds ?? 0) > lateSeconds) return { tone: "warn", word: "late" };
  return { tone: "good", word: queue.waiting > 0 ? "flowing" : "empty" };
}

// What needs a person: an outage of NATS, late rows and dead letters.
export function statusProblems<Status extends ServiceStatus>(
  queues: readonly QueueLooks<Status>[],
  status: Status,
  duringOutageOfNats: string | undefined,
): Child[] {
  const natsIsAway = status.nats === false;
  const late = queues.flatMap(({ noun, lateSeconds, waitsForNats, of }) => {
    const { oldest_waiting_seconds: waited } = of(status);
    if (waited === null || waited <= lateSeconds || (natsIsAway && waitsForNats)) return [];
    return [`The oldest ${noun} has been waiting for ${age(waited)}, see below.`];
  });
  const dead = sumOf(status.errors ?? []);
  return [
    ...(natsIsAway ? [`NATS is unreachable: ${duringOutageOfNats} until it is back.`] : []),
    ...late,
    ...(dead > 0
      ? [
        <a href="/console/dead-letters">
          {count(dead, "dead letter needs", "dead letters need")} attention
        </a>,
      ]
      : []),
  ];
}

function sumOf(errors: { count: number }[]): number {
  return errors.reduce((sum, { count }) => sum + count, 0);
}
