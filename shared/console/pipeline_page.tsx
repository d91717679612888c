import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { ApiError } from "../http/errors.ts";
import { pageAnswer } from "./answers.ts";
import type { ShowPage } from "./ask.ts";
import { ConsolePage, Live, LiveState, type Site } from "./layout.tsx";
import type { Fragments } from "./live.ts";
import { Pipeline, stageFragments } from "./pipeline.tsx";
import { Search, type SearchBy } from "./search.tsx";
import type { Stage } from "./stages.tsx";
import type { WaitingRow } from "../operators/status.ts";
import { WaitingTable } from "./waiting_table.tsx";

// The first page: whether events flow, what is waiting, and what needs a person.

export interface Overview {
  stages: Stage[];
  problems: Child[];
  queues: { noun: string; oldest: WaitingRow[] }[]; // each with a name for its rows
  error?: string; // why the status could not be read
}

// Without the status, for example while the database is down, the counters of the process remain.
export async function overviewFrom<Status>(
  readStatus: () => Promise<Status>,
  overview: (status: Status | undefined) => Overview,
): Promise<Overview> {
  try {
    return overview(await readStatus());
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { ...overview(undefined), error: error.message };
  }
}

export function fragmentsOf(overview: Overview): Fragments {
  return {
    ...stageFragments(overview.stages),
    problems: <Problems {...overview} />,
    oldest: <Oldest {...overview} />,
  };
}

/** What other services do before or after the stages of this one. */
export interface Elsewhere {
  title: string;
  about: string;
}

interface PipelinePageParts {
  site: Site;
  searchBy: SearchBy[];
  overview: () => Promise<Overview>;
  before: Elsewhere | undefined;
  after: Elsewhere | undefined;
}

export function pipelinePage(parts: PipelinePageParts): ShowPage {
  const { site, searchBy, before, after } = parts;
  return async (context) => {
    const overview = await parts.overview();
    return pageAnswer(
      context,
      <ConsolePage site={site} path="/console" title="Pipeline">
        <LiveState />
        <Live name="problems">
          <Problems {...overview} />
        </Live>
        <Pipeline
          stages={overview.stages}
          before={before && <ElsewhereStage {...before} />}
          after={after && <ElsewhereStage {...after} />}
        />
        <p class="muted">
          Rates are those of this replica. Backlogs are those of all replicas.
        </p>
        <h2>Where is my event?</h2>
        <Search searchBy={searchBy} />
        <h2>Oldest in the backlog</h2>
        <Live name="oldest">
          <Oldest {...overview} />
        </Live>
      </ConsolePage>,
    );
  };
}

function ElsewhereStage({ title, about }: Elsewhere): JSX.Element {
  return (
    <>
      <h2>{title}</h2>
      <p class="muted">{about}</p>
    </>
  );
}

function Oldest({ queues }: Overview): JSX.Element {
  return (
    <>
      {queues.map(({ noun, oldest }) => <WaitingTable noun={noun} rows={oldest} />)}
    </>
  );
}

function Problems({ problems, error }: Overview): JSX.Element {
  if (error !== undefined) return <p class="note bad">{error}</p>;
  if (problems.length === 0) return <p class="note good">All is well.</p>;
  return (
    <ul class="note warn">
      {problems.map((problem) => <li>{problem}</li>)}
    </ul>
  );
}
