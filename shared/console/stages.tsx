import type { Child } from "hono/jsx";
import type { z } from "zod";
import type { statusFields } from "../operators/status.ts";
import type { Fact, Tone } from "./layout.tsx";
import type { Samples } from "./samples.ts";
import { age, count, whole } from "./text.ts";
import type { WaitingRow } from "./waiting_table.tsx";

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

// What a service reports of its queue of leased rows.
export type QueueStatus = z.infer<z.ZodObject<typeof statusFields>> & { oldest: WaitingRow[] };

export interface Queue {
  title: string;
  about: string;
  noun: string; // of one row
  lateSeconds: number;
  duringOutageOfNats: string;
  waitsForNats: boolean; // then a late row is no further problem while NATS is down
}

// The stage at which rows wait.
export function queueStage(
  { title, about, lateSeconds }: Queue,
  status: QueueStatus | undefined,
): Stage {
  return {
    title,
    about,
    state: queueState(status, lateSeconds),
    facts: [
      ["waiting", status ? whole(status.waiting) : "–"],
      ["oldest", age(status?.oldest_waiting_seconds ?? null)],
      ["dead letters", status ? whole(deadLettersIn(status)) : "–"],
    ],
  };
}

function queueState(status: QueueStatus | undefined, lateSeconds: number): Stage["state"] {
  if (!status) return { tone: "muted", word: "unknown" };
  if ((status.oldest_waiting_seconds ?? 0) > lateSeconds) return { tone: "warn", word: "late" };
  return { tone: "good", word: status.waiting > 0 ? "flowing" : "empty" };
}

export function queueProblems(
  { noun, lateSeconds, duringOutageOfNats, waitsForNats }: Queue,
  status: QueueStatus,
): Child[] {
  const { nats, oldest_waiting_seconds: waited } = status;
  const isLate = waited !== null && waited > lateSeconds && (nats || !waitsForNats);
  const dead = deadLettersIn(status);
  return [
    ...(nats ? [] : [`NATS is unreachable: ${duringOutageOfNats} until it is back.`]),
    ...(isLate ? [`The oldest ${noun} has been waiting for ${age(waited)}, see below.`] : []),
    ...(dead > 0
      ? [
        <a href="/console/dead-letters">
          {count(dead, "dead letter needs", "dead letters need")} attention
        </a>,
      ]
      : []),
  ];
}

function deadLettersIn({ errors }: QueueStatus): number {
  return errors.reduce((sum, { count }) => sum + count, 0);
}
