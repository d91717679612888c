import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { Facts, Live, State } from "./layout.tsx";
import type { Fragments } from "./live.ts";
import { points } from "./samples.ts";
import type { Stage } from "./stages.tsx";
import { rateOf } from "./text.ts";

// The pipeline as a picture: the stages that an event passes, each with its rate, its backlog and
// the age of that backlog.

export function stageFragments(stages: Stage[]): Fragments {
  return Object.fromEntries(
    stages.map((stage) => [nameOf(stage), <StageBody stage={stage} />]),
  );
}

function nameOf({ title }: Stage): string {
  return `stage-${title.toLowerCase()}`;
}

interface PipelineParts {
  stages: Stage[];
  before?: Child;
  after?: Child;
}

export function Pipeline({ stages, before, after }: PipelineParts): JSX.Element {
  return (
    <ol class="pipeline" aria-label="Stages in the order in which an event passes them">
      {before && <li class="elsewhere">{before}</li>}
      {stages.map((stage) => (
        <li class="stage">
          <h2>{stage.title}</h2>
          <p class="muted">{stage.about}</p>
          <Live name={nameOf(stage)}>
            <StageBody stage={stage} />
          </Live>
        </li>
      ))}
      {after && <li class="elsewhere">{after}</li>}
    </ol>
  );
}

function StageBody({ stage: { state, flow, facts = [] } }: { stage: Stage }): JSX.Element {
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

// The rates of the last five minutes. The label describes them to people who can't see the picture.
function Sparkline(
  { rates, unit }: { rates: (number | undefined)[]; unit: string },
): JSX.Element {
  const known = rates.filter((rate) => rate !== undefined);
  const highest = Math.max(0, ...known);
  const label = `Last 5 minutes: up to ${rateOf(highest)} ${unit}`;
  const step = width / (points - 1);
  const y = (rate: number) => height - 2 - (rate / Math.max(highest, 1)) * (height - 4);
  // The line begins with the first known rate.
  const from = rates.findIndex((rate) => rate !== undefined);
  const spots = rates.slice(from).map((rate, i) =>
    `${((from + i) * step).toFixed(1)},${y(rate ?? 0).toFixed(1)}`
  );
  return (
    <svg
      class="spark"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
    >
      <title>{label}</title>
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
