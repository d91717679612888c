import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { pageAnswer } from "@kenri/shared/console/answers.ts";
import type { ShowPage } from "@kenri/shared/console/ask.ts";
import {
  ConsolePage,
  Facts,
  type Site,
  Status,
  Table,
  When,
} from "@kenri/shared/console/layout.tsx";
import { EventLink, SearchField } from "@kenri/shared/console/search.tsx";
import { age, whole } from "@kenri/shared/console/text.ts";
import type { TicketLook } from "./find_ticket.ts";
import type { MatchmakingStatus } from "./status.ts";

// Who waits in each mode, what became of tickets, what Redis can lose, and a single ticket.

export const matchmakingPath = "/console/matchmaking";

export function matchmakingPage(site: Site): ShowPage {
  return async (context, api) => {
    const ticket_id = context.req.query("ticket_id")?.trim() ?? "";
    const [status, found] = await Promise.all([
      api.get<MatchmakingStatus>("/debug/matchmaking/status"),
      ticket_id === ""
        ? undefined
        : api.get<TicketLook>("/debug/matchmaking/ticket", { ticket_id }),
    ]);
    return pageAnswer(
      context,
      <ConsolePage site={site} path={matchmakingPath} title="Matchmaking">
        <form class="search" method="get" action={matchmakingPath} role="search">
          <SearchField id="ticket_id" label="Ticket id" value={ticket_id} maxlength={255} />
          <button type="submit">Find</button>
        </form>
        {found &&
          (found.ticket
            ? <Ticket site={site} ticket={found.ticket} event={found.event} />
            : <p class="empty">There is no such ticket.</p>)}
        <h2>Modes</h2>
        <Modes {...status} />
        <h2>Since this replica started</h2>
        <Replica {...status} />
        <h2>Redis</h2>
        <Redis {...status} />
      </ConsolePage>,
    );
  };
}

function Modes({ modes }: MatchmakingStatus): JSX.Element {
  return (
    <>
      <Table
        label="Modes, and who waits in them"
        columns={["Mode", "Tickets", "Oldest", "Pairable", "Events waiting", "Dead events"]}
        rows={modes.map((mode): Child[] => [
          mode.mode,
          whole(mode.tickets),
          age(mode.oldest_seconds),
          age(mode.pairable_seconds),
          <a href="/console">{whole(mode.events)}</a>,
          <a href="/console/dead-letters">{whole(mode.dead_events)}</a>,
        ])}
        none="There is no mode."
      />
      <p class="muted">
        Pairable is how long two users have waited who could be matched with each other. It stays
        below a second while pairing works; a user who waits alone is not counted.
      </p>
    </>
  );
}

function Replica({ replica }: MatchmakingStatus): JSX.Element {
  return (
    <Facts
      facts={[
        ["matches", whole(replica.matches)],
        ["tickets expired", whole(replica.expired)],
        ["tickets cancelled", whole(replica.cancelled)],
        ["tickets invalid", whole(replica.invalid)],
        ["mean time to match", age(replica.mean_seconds_to_match)],
        ["mean time of pairing", age(replica.mean_pairing_delay_seconds)],
      ]}
    />
  );
}

function Redis({ redis }: MatchmakingStatus): JSX.Element {
  return (
    <>
      <Facts
        facts={[
          ["version", redis.version ?? "unknown"],
          ["append-only file", redis.append_only ? "yes" : "no"],
          ["written to the disk", redis.fsync ?? "unknown"],
        ]}
      />
      <p class={redis.append_only ? "muted" : "note warn"}>
        {redis.can_lose ?? "Redis loses nothing that it has answered"}.
      </p>
    </>
  );
}

interface TicketParts {
  site: Site;
  ticket: NonNullable<TicketLook["ticket"]>;
  event: TicketLook["event"];
}

function Ticket({ site, ticket, event }: TicketParts): JSX.Element {
  return (
    <article class="card">
      <h2>
        Ticket <Status site={site} status={ticket.status ?? "unknown"} />
      </h2>
      <Facts
        facts={[
          ["ticket", <code>{ticket.ticket_id}</code>],
          ["user", ticket.user_id ?? "unknown"],
          ["mode", ticket.mode],
          ["joined", <When at={ticket.created_at} />],
          ["expires", <When at={ticket.expires_at} />],
          !!ticket.matched_at && ["matched", <When at={ticket.matched_at} />],
          !!ticket.match_id && ["match", <code>{ticket.match_id}</code>],
          !!ticket.peer_user_ids && ["peers", ticket.peer_user_ids],
          !!ticket.attributes && ["attributes", <code>{ticket.attributes}</code>],
          ["idempotency key", ticket.idempotency_key ?? "–"],
          ["trace", <code>{ticket.trace_id || "–"}</code>],
          event !== null && [
            "event",
            <span>
              <EventLink id={event.event_id} /> <Status site={site} status={event.state} />
            </span>,
          ],
          ["deleted", <When at={ticket.deleted_at} />],
        ]}
      />
      <PeerLinks site={site} event={event} />
    </article>
  );
}

// What was published is in the consoles of its receivers.
function PeerLinks({ site: { peers }, event }: Pick<TicketParts, "site" | "event">) {
  if (event?.state !== "GONE") return null;
  return (
    <>
      {peers.map(({ name, url }) => (
        <p>
          <a href={`${url}/console/timeline?by=event_id&q=${event.event_id}`}>
            Continue in {name} ↗
          </a>
        </p>
      ))}
    </>
  );
}
