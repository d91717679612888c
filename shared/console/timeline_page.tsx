import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import type { EventTimeline, Step } from "../operators/timeline.ts";
import { pageAnswer } from "./answers.ts";
import { queryOf } from "./ask.ts";
import type { ShowPage } from "./console.tsx";
import { ConsolePage, Facts, Json, type Site, Status, Table, When } from "./layout.tsx";
import { age, shortKey } from "./text.ts";

// What became of an event: found by its id, by its user, and where the service knows it by the key of
// its request.

export const timelinePath = "/console/timeline";

export interface SearchBy {
  by: "event_id" | "user_id" | "idempotency_key";
  title: string;
}

interface StoredAnswer {
  idempotency_key: string;
  at: string;
  expires_at: string;
  status: number;
  body: unknown;
}

interface Found {
  events: EventTimeline[];
  key?: StoredAnswer;
}

export function timelinePage(site: Site, ways: SearchBy[]): ShowPage {
  return async (context, api) => {
    const { req } = context;
    const asked = req.query("q")?.trim() ?? "";
    const { by } = ways.find(({ by }) => by === req.query("by")) ?? { by: "user_id" };
    const found = asked === ""
      ? undefined
      : await api.get<Found>(`/debug/${site.service}/timeline`, { [by]: asked });
    return pageAnswer(
      context,
      <ConsolePage site={site} path={timelinePath} title="Where is my event?">
        <Search ways={ways} by={by} asked={asked} />
        {found && <Result site={site} found={found} by={by} asked={asked} />}
      </ConsolePage>,
    );
  };
}

interface SearchParts {
  ways: SearchBy[];
  by?: string;
  asked?: string;
}

export function Search({ ways, by = "user_id", asked = "" }: SearchParts): JSX.Element {
  return (
    <form class="search" method="get" action={timelinePath} role="search">
      <div>
        <label for="by">Find by</label>
        <select id="by" name="by">
          {ways.map((way) => <option value={way.by} selected={way.by === by}>{way.title}</option>)}
        </select>
      </div>
      <div class="wide">
        <label for="q">which is</label>
        <input
          id="q"
          name="q"
          value={asked}
          required
          maxlength={4000}
          autocapitalize="off"
          autocomplete="off"
          spellcheck={false}
        />
      </div>
      <button type="submit">Find</button>
    </form>
  );
}

export function EventLink({ id }: { id: string | null }): JSX.Element {
  if (id === null) return <span class="muted">–</span>;
  const href = `${timelinePath}${queryOf({ by: "event_id", q: id })}`;
  return (
    <a href={href}>
      <code>{id}</code>
    </a>
  );
}

interface ResultParts {
  site: Site;
  found: Found;
  by: string;
  asked: string;
}

function Result({ site, found: { events, key }, by, asked }: ResultParts): JSX.Element {
  const [event] = events;
  return (
    <>
      {key && <StoredAnswerSection stored={key} />}
      {!event && (
        <p class="empty">
          {site.service} knows no event of <code>{asked}</code>.
          <OtherHalf site={site} by={by} asked={asked} />
        </p>
      )}
      {event && events.length === 1 && <OneEvent site={site} event={event} />}
      {events.length > 1 && <Events events={events} />}
      {by === "user_id" && event && <OtherHalf site={site} by={by} asked={asked} />}
    </>
  );
}

function StoredAnswerSection({ stored }: { stored: StoredAnswer }): JSX.Element {
  return (
    <section class="card">
      <h2>The answer under this key</h2>
      <Facts
        facts={[
          ["answered with", stored.status],
          ["at", <When at={stored.at} />],
          ["kept until", <When at={stored.expires_at} />],
        ]}
      />
      <Json value={stored.body} label="Body of the answer" />
    </section>
  );
}

function Events({ events }: { events: EventTimeline[] }): JSX.Element {
  return (
    <Table
      label="Events, the newest first"
      columns={["First known", "Event", "Item", "Version", "Type", "State"]}
      rows={events.map((event): Child[] => [
        <When at={event.steps[0]?.at} />,
        <EventLink id={event.event_id} />,
        event.stock_keeping_unit ?? "–",
        event.version ?? "–",
        <span class="word">{event.type ?? "–"}</span>,
        <Status status={event.status} />,
      ])}
      none=""
    />
  );
}

function OneEvent({ site, event }: { site: Site; event: EventTimeline }): JSX.Element {
  const { event_id, user_id, status, steps, next_retry_at, attempt_count } = event;
  return (
    <article class="card">
      <h2>
        {event.type ?? "Event"} <Status status={status} />
      </h2>
      <Facts
        facts={[
          ["event", <code>{event_id}</code>],
          ["user", user_id === null ? "–" : <UserLink id={user_id} />],
          ["item", `${event.stock_keeping_unit ?? "–"}, version ${event.version ?? "–"}`],
          ["trace", <code>{event.trace_id ?? "–"}</code>],
          ...(event.idempotency_key
            ? [
              ["idempotency key", <code>{shortKey(event.idempotency_key)}</code>] as [
                string,
                Child,
              ],
            ]
            : []),
          ["failed attempts", attempt_count],
          ...(next_retry_at ? [["next try", <When at={next_retry_at} />] as [string, Child]] : []),
        ]}
      />
      <h3>What happened here</h3>
      <ol class="steps">
        {steps.map((step, i) => <OneStep step={step} before={steps[i - 1]} />)}
      </ol>
      <OtherHalf site={site} by="event_id" asked={event_id} />
    </article>
  );
}

function UserLink({ id }: { id: string }): JSX.Element {
  return <a href={`${timelinePath}${queryOf({ by: "user_id", q: id })}`}>{id}</a>;
}

const meaningOf: Record<string, string> = {
  CHANGED: "The change was committed, with its event.",
  PUBLISHED: "The stream has acknowledged it.",
  IN_FLIGHT: "A relay is publishing it.",
  RETRIED: "The attempt failed and is made again.",
  GAVE_UP: "The last attempt failed: it is a dead letter.",
  TAKEN_OVER: "A lease ran out, and somebody else took over.",
  REPLAYED: "An operator had it published again.",
  MENDED: "It was found not to be received and published again.",
  LOST: "The stream had lost it: it is published again.",
  SENT_BACK: "It was sent back.",
  RECEIVED: "The message was stored as a notification.",
  CAPTURED: "JetStream gave the message up; a copy was kept.",
  PROCESSING: "It is being sent.",
  SENT: "The channel has taken it.",
};

function OneStep({ step, before }: { step: Step; before: Step | undefined }): JSX.Element {
  const { at, error, worker, stream_seq, who, reason, begun_at } = step;
  const later = before && before.at && at ? (Date.parse(at) - Date.parse(before.at)) / 1_000 : null;
  return (
    <li class={error ? "trouble" : undefined}>
      <p>
        <b>{step.step}</b> <When at={at} />
        {later !== null && <span class="muted">+{age(later)}</span>}
      </p>
      <p>{meaningOf[step.step]}</p>
      {error && <p class="bad error">{error}</p>}
      <p class="muted">
        {[
          stream_seq && `stream sequence ${stream_seq}`,
          worker && `worker ${worker}`,
          begun_at && `begun ${begun_at.slice(11, 23)}`,
          who && `by ${who}`,
          reason && `because: ${reason}`,
        ].filter(Boolean).join(" · ")}
      </p>
    </li>
  );
}

function OtherHalf(
  { site: { peerUrl, other }, by, asked }: { site: Site; by: string; asked: string },
): JSX.Element | null {
  // Keys are known only where requests come in.
  if (!peerUrl || by === "idempotency_key") return null;
  return (
    <p>
      <a href={`${peerUrl}${timelinePath}${queryOf({ by, q: asked })}`}>
        What {other} knows of it ↗
      </a>
    </p>
  );
}
