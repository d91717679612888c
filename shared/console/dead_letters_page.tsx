import type { JSX } from "hono/jsx/jsx-runtime";
import type { Layers } from "../operators/looks.ts";
import type { DeadLetter, DeadLetterCounts, DeadLetterPage } from "../operators/dead_letters.ts";
import { subjectOf, subjectTitle } from "../operators/subject.ts";
import { pageAnswer } from "./answers.ts";
import { queryOf, type ShowPage } from "./ask.ts";
import { takeNote } from "./forms.ts";
import { ConsolePage, Facts, Json, NextPage, type Site, Table, When } from "./layout.tsx";
import { TimelineLink } from "./search.tsx";
import { confirmPath, deadLettersPath } from "./send_back_page.tsx";
import { age, ageOf, whole } from "./text.ts";

// Dead letters: counted by error, listed, and each with its payload.

export const deadLetterPath = `${deadLettersPath}/one`;

export function deadLettersPage(site: Site, layers: Layers): ShowPage {
  return async (context, api) => {
    const { req } = context;
    const layer = req.query("layer") ?? Object.keys(layers)[0] ?? "";
    const error = req.query("error");
    const [{ errors }, list] = await Promise.all([
      api.get<DeadLetterCounts>(`/debug/${site.service}/dead-letters/errors`),
      api.get<DeadLetterPage>(`/debug/${site.service}/dead-letters`, {
        layer,
        error,
        cursor: req.query("cursor"),
      }),
    ]);
    return pageAnswer(
      context,
      <ConsolePage site={site} path={deadLettersPath} title="Dead letters" note={takeNote(context)}>
        <p>
          These used up all their attempts and need a person. Once the cause is fixed, send them
          back to try again. This is safe to repeat: duplicates have no effect.
        </p>
        <Errors errors={errors} />
        {Object.keys(layers).length > 1 && (
          <nav class="tabs" aria-label="Layers">
            {Object.keys(layers).map((name) => (
              <a
                href={`${deadLettersPath}${queryOf({ layer: name })}`}
                aria-current={name === layer ? "true" : undefined}
              >
                {name}
              </a>
            ))}
          </nav>
        )}
        <h2>Layer {layer}</h2>
        <p class="muted">{layers[layer]}</p>
        {error !== undefined && (
          <p>
            Only dead letters with the error <q>{error}</q>.{" "}
            <a href={`${deadLettersPath}${queryOf({ layer })}`}>Show all</a>
          </p>
        )}
        <Selection layer={layer} list={list} />
        <NextPage
          href={list.next_cursor &&
            `${deadLettersPath}${queryOf({ layer, error, cursor: list.next_cursor })}`}
        />
      </ConsolePage>,
    );
  };
}

function Errors({ errors }: DeadLetterCounts): JSX.Element {
  return (
    <Table
      label="Errors, the most frequent first"
      columns={["Layer", "Count", "Oldest", "Error", ""]}
      rows={errors.map(({ layer, count, oldest, error }) => [
        layer,
        whole(count),
        ageOf(oldest),
        <a class="error" href={`${deadLettersPath}${queryOf({ layer, error })}`}>{error}</a>,
        <a class="button" href={`${confirmPath}${queryOf({ layer, error })}`}>Send all back…</a>,
      ])}
      none="There are no dead letters."
    />
  );
}

function Selection({ layer, list }: { layer: string; list: DeadLetterPage }): JSX.Element {
  const { dead_letters } = list;
  if (dead_letters.length === 0) return <p class="empty">No dead letters in this layer.</p>;
  return (
    <form method="get" action={confirmPath}>
      <input type="hidden" name="layer" value={layer} />
      <Table
        label="Dead letters, the oldest first"
        columns={["Select", "Id", "Age", subjectTitle(dead_letters), "Error"]}
        rows={dead_letters.map((dead) => [
          <label class="choose">
            <input type="checkbox" name="id" value={dead.id} />
            <span class="hidden">Select {dead.id}</span>
          </label>,
          <a href={`${deadLetterPath}${queryOf({ layer, id: dead.id })}`}>
            {dead.id === subjectOf(dead)?.id ? "Show" : dead.id}
          </a>,
          age(dead.age_seconds),
          <TimelineLink of={dead} />,
          <span class="error">{dead.error}</span>,
        ])}
        none=""
      />
      <button type="submit">Send selected back…</button>
    </form>
  );
}

export function deadLetterPage(site: Site, layers: Layers): ShowPage {
  return async (context, api) => {
    const layer = context.req.query("layer") ?? "";
    const id = context.req.query("id") ?? "";
    const { dead_letters: [dead] } = await api.get<DeadLetterPage>(
      `/debug/${site.service}/dead-letters`,
      { layer, id },
    );
    return pageAnswer(
      context,
      <ConsolePage site={site} path={deadLettersPath} title={`Dead letter ${id}`}>
        {dead
          ? <OneDeadLetter dead={dead} about={layers[layer]} />
          : <p class="empty">This is not a dead letter, or no longer one.</p>}
        <p>
          <a href={`${deadLettersPath}${queryOf({ layer })}`}>All dead letters of {layer}</a>
        </p>
      </ConsolePage>,
    );
  };
}

function OneDeadLetter(
  { dead, about }: { dead: DeadLetter; about: string | undefined },
): JSX.Element {
  const { layer, error, since, age_seconds, attempts, payload, id } = dead;
  return (
    <article class="card">
      <p class="bad error">{error}</p>
      <Facts
        facts={[
          [
            "layer",
            <span>
              {layer} <span class="muted">{about}</span>
            </span>,
          ],
          [subjectTitle([dead]).toLowerCase(), <TimelineLink of={dead} />],
          [
            "since",
            <span>
              <When at={since} />, {age(age_seconds)} ago
            </span>,
          ],
          ["attempts", attempts ?? "–"],
        ]}
      />
      <Json value={payload} label="Payload" />
      <p>
        <a class="button" href={`${confirmPath}${queryOf({ layer, id })}`}>Send back…</a>
      </p>
    </article>
  );
}
