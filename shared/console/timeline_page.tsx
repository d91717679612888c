import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import type { EventTimeline, StoredAnswer, Timeline } from "../operators/timeline.ts";
import { pageAnswer } from "./answers.ts";
import { queryOf, type ShowPage } from "./ask.ts";
import { EventCard } from "./event_card.tsx";
import { ConsolePage, Facts, Json, type Site, Status, Table, When } from "./layout.tsx";
import { Search, type SearchBy, TimelineLink, timelinePath } from "./search.tsx";

// What happened to an event, found by its id, by its user, or by the key of its request where the
// service knows it.

export function timelinePage(
  site: Site,
  searchBy: SearchBy[],
  meaningOf: Record<string, string>,
): ShowPage {
  return async (context, api) => {
    const { req } = context;
    const value = req.query("q")?.trim() ?? "";
    const { by } = searchBy.find(({ by }) => by === req.query("by")) ?? { by: "user_id" };
    const found = value === ""
      ? undefined
      : await api.get<Timeline>(`/debug/${site.service}/timeline`, { [by]: value });
    return pageAnswer(
      context,
      <ConsolePage site={site} path={timelinePath} title="Where is my event?">
        <Search searchBy={searchBy} by={by} value={value} />
        {found && <Result {...{ site, found, by, value, meaningOf }} />}
      </ConsolePage>,
    );
  };
}

interface ResultParts {
  site: Site;
  found: Timeline;
  by: string;
  value: string;
  meaningOf: Record<string, string>; // of the steps, in a sentence
}

function Result({ site, found: { events, key }, by, value, meaningOf }: ResultParts): JSX.Element {
  const [event] = events;
  return (
    <>
      {key && <StoredAnswerCard stored={key} />}
      {!event && (
        <p class="empty">
          {site.service} has no event for <code>{value}</code>.
        </p>
      )}
      {event && events.length === 1 && (
        <EventCard site={site} event={event} meaningOf={meaningOf}>
          {event.event_id !== null && (
            <PeerLinks site={site} by="event_id" value={event.event_id} />
          )}
        </EventCard>
      )}
      {events.length > 1 && <Events site={site} events={events} />}
      {(by === "user_id" || !event) && <PeerLinks site={site} by={by} value={value} />}
    </>
  );
}

function StoredAnswerCard({ stored }: { stored: StoredAnswer }): JSX.Element {
  return (
    <section class="card">
      <h2>Stored answer for this key</h2>
      <Facts
        facts={[
          ["status", stored.status],
          ["stored at", <When at={stored.at} />],
          ["expires at", <When at={stored.expires_at} />],
        ]}
      />
      <Json value={stored.body} label="Body of the answer" />
    </section>
  );
}

function Events({ site, events }: { site: Site; events: EventTimeline[] }): JSX.Element {
  return (
    <Table
      label="Events, the newest first"
      columns={["First step", "Event", "Item", "Version", "Type", "State"]}
      rows={events.map((event): Child[] => [
        <When at={event.steps[0]?.at} />,
        <TimelineLink of={event} />,
        event.stock_keeping_unit ?? "–",
        event.version ?? "–",
        <span class="word">{event.type ?? "–"}</span>,
        <Status site={site} status={event.status} />,
      ])}
      none=""
    />
  );
}

function PeerLinks(
  { site: { peers }, by, value }: { site: Site; by: string; value: string },
): JSX.Element | null {
  // Only the service that receives the requests knows their keys, what they reserve and their orders.
  if (by !== "event_id" && by !== "user_id") return null;
  return (
    <>
      {peers.map(({ name, url }) => (
        <p>
          <a href={`${url}${timelinePath}${queryOf({ by, q: value })}`}>
            {by === "user_id" ? `All events of this user in ${name} ↗` : `Continue in ${name} ↗`}
          </a>
        </p>
      ))}
    </>
  );
}
