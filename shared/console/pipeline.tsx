import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { Facts, Live, State, type Tone } from "./layout.tsx";
import type { Fragments } from "./live.ts";
import { points } from "./samples.ts";
import { rateOf } from "./text.ts";

// The way of an event as a picture: its stages in order, each with what flows, what waits, and since
// when.

export interface Stage {
  name: string;
  title: string;
  about: string;
  state: { tone: Tone; word: string };
  flow?: { unit: string; rate: number | undefined; rates: (number | undefined)[] };
  facts: [string, Child][];
}

export function stageFragments(stages: Stage[]): Fragments {
  return Object.fromEntries(
    stages.map((stage) => [`stage-${stage.name}`, <StageBody stage={stage} />]),
  );
}

interface PipelineParts {
  stages: Stage[];
  before?: Child;
  after?: Child;
}

export function Pipeline({ stages, before, after }: PipelineParts): JSX.Element {
  return (
    <ol class="pipeline" aria-label="Stages, in the order in which an event passes them">
      {before && <li class="elsewhere">{before}</li>}
      {stages.map((stage) => (
        <li class="stage">
          <h2>{stage.title}</h2>
          <p class="muted">{stage.about}</p>
          <Live name={`stage-${stage.name}`}>
            <StageBody stage={stage} />
          </Live>
        </li>
      ))}
      {after && <li class="elsewhere">{after}</li>}
    </ol>
  );
}

function StageBody({ stage: { state, flow, facts } }: { stage: Stage }): JSX.Element {
  return (
    <>
      <p>
        <State {...state} />
      </p>
      {flow && (
        <>
          <p class="rate">
            <b>{rateOf(flow.rate)}</b> {flow.unit}
          </p>
          <Sparkline rates={flow.rates} unit={flow.unit} />
        </>
      )}
      <Facts facts={facts} />
    </>
  );
}

const width = 240;
const height = 36;

// The last five minutes. Its words are for those who can't see it.
function Sparkline(
  { rates, unit }: { rates: (number | undefined)[]; unit: string },
): JSX.Element {
  const known = rates.filter((rate) => rate !== undefined);
  const highest = Math.max(0, ...known);
  const said = `Last 5 minutes: up to ${rateOf(highest)} ${unit}`;
  const step = width / (points - 1);
  const y = (rate: number) => height - 2 - (rate / Math.max(highest, 1)) * (height - 4);
  // Where nothing is known yet the line begins later.
  const from = rates.findIndex((rate) => rate !== undefined);
  const spots = rates.slice(from).map((rate, i) =>
    `${((from + i) * step).toFixed(1)},${y(rate ?? 0).toFixed(1)}`
  );
  return (
    <svg
      class="spark"
      role="img"
      aria-label={said}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
    >
      <title>{said}</title>
      <path class="base" d={`M0 ${height - 2}H${width}`} />
      {known.length > 0 && (
        <>
          <polygon
            class="area"
            points={`${(from * step).toFixed(1)},${height - 2} ${spots.join(" ")} ${width},${
              height - 2
            }`}
          />
          <polyline class="line" points={spots.join(" ")} />
        </>
      )}
    </svg>
  );
}

export function flowOf(rate: number | undefined): Stage["state"] {
  if (rate === undefined) return { tone: "muted", word: "not counted" };
  return rate > 0 ? { tone: "good", word: "flowing" } : { tone: "muted", word: "idle" };
}

export function waitingState(
  status: { waiting: number; oldest_waiting_seconds: number | null } | undefined,
  lateSeconds: number,
): Stage["state"] {
  if (!status) return { tone: "muted", word: "not known" };
  const late = (status.oldest_waiting_seconds ?? 0) > lateSeconds;
  if (late) return { tone: "warn", word: "late" };
  return status.waiting > 0 ? { tone: "good", word: "flowing" } : { tone: "good", word: "empty" };
}

// How many have been given up, whatever their error.
export function deadOf({ errors }: { errors: { count: number }[] }): number {
  return errors.reduce((sum, { count }) => sum + count, 0);
}
