import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { ApiError } from "../http/errors.ts";
import { pageAnswer } from "./answers.ts";
import type { ShowPage } from "./console.tsx";
import { ConsolePage, Live, LiveState, type Site } from "./layout.tsx";
import type { Fragments } from "./live.ts";
import { Pipeline, type Stage, stageFragments } from "./pipeline.tsx";
import { Search, type SearchBy } from "./timeline_page.tsx";

// The first page: does it flow, what waits, and what asks for a person.

export interface Look {
  stages: Stage[];
  problems: Child[];
  oldest: JSX.Element; // what waits longest
}

export interface LookWithTrouble extends Look {
  trouble: string | undefined; // why the figures of the tables are not known
}

// Also without its database a service has something to show.
export async function lookAround<Status>(
  ask: () => Promise<Status>,
  look: (status: Status | undefined) => Look,
): Promise<LookWithTrouble> {
  try {
    return { ...look(await ask()), trouble: undefined };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { ...look(undefined), trouble: error.message };
  }
}

export function fragmentsOf({ stages, ...look }: LookWithTrouble): Fragments {
  return {
    ...stageFragments(stages),
    problems: <Problems {...look} />,
    oldest: look.oldest,
  };
}

interface PipelinePageParts {
  site: Site;
  ways: SearchBy[];
  look: () => Promise<LookWithTrouble>;
  before?: Child;
  after?: Child;
}

export function pipelinePage({ site, ways, look, before, after }: PipelinePageParts): ShowPage {
  return async (context) => {
    const { stages, oldest, ...rest } = await look();
    return pageAnswer(
      context,
      <ConsolePage site={site} path="/console" title="Pipeline">
        <LiveState />
        <Live name="problems">
          <Problems {...rest} />
        </Live>
        <Pipeline stages={stages} before={before} after={after} />
        <p class="muted">
          Rates are those of this replica; what waits is that of all replicas together.
        </p>
        <h2>Where is my event?</h2>
        <Search ways={ways} />
        <h2>What waits longest</h2>
        <Live name="oldest">{oldest}</Live>
      </ConsolePage>,
    );
  };
}

export function OtherSide({ site: { other, peerUrl }, text }: {
  site: Site;
  text: string;
}): JSX.Element {
  return (
    <>
      <h2>{peerUrl ? <a href={`${peerUrl}/console`}>{other} ↗</a> : other}</h2>
      <p class="muted">{text}</p>
    </>
  );
}

function Problems(
  { problems, trouble }: Pick<LookWithTrouble, "problems" | "trouble">,
): JSX.Element {
  if (trouble !== undefined) return <p class="note bad">{trouble}</p>;
  if (problems.length === 0) return <p class="note good">All is well.</p>;
  return (
    <ul class="note warn">
      {problems.map((problem) => <li>{problem}</li>)}
    </ul>
  );
}
