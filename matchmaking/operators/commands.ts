import { type OwnCommand, UsageError } from "@kenri/shared/ops/command.ts";
import { type NoFields, reads } from "@kenri/shared/ops/service_api.ts";
import { age, list, table, time } from "@kenri/shared/ops/text.ts";
import type { TicketLook, TicketQuery } from "./find_ticket.ts";
import type { MatchmakingStatus } from "./status.ts";

// The commands of `ops` for matchmaking. `matchmaking late` is the command of its events.

const statusRoute = reads<NoFields, MatchmakingStatus>("status");
const ticketRoute = reads<TicketQuery, TicketLook>("ticket");

export const matchmaking: OwnCommand = {
  usage: "matchmaking",
  words: 0,
  summary: "Show who waits in each mode, what became of tickets, and what Redis can lose",
  options: {},
  help: `
PAIRABLE is how long two users have waited who could be matched with each other: it stays below a
second while matchmaking works. What became of tickets is what the replica that answers has counted
since it started.`,
  async run(service) {
    const status = await service.ask(statusRoute, {});
    const { modes, redis, replica, nats } = status;
    return {
      problem: false,
      json: { modes, redis, replica, nats },
      text: [
        table(modes, {
          "MODE": ({ mode }) => mode,
          "TICKETS": ({ tickets }) => tickets,
          "OLDEST": ({ oldest_seconds }) => age(oldest_seconds),
          "PAIRABLE": ({ pairable_seconds }) => age(pairable_seconds),
          "EVENTS WAITING": ({ events }) => events,
          "DEAD EVENTS": ({ dead_events }) => dead_events,
        }),
        "",
        list({
          "matches": replica.matches,
          "tickets expired": replica.expired,
          "tickets cancelled": replica.cancelled,
          "tickets invalid": replica.invalid,
          "mean time to match": age(replica.mean_seconds_to_match),
          "mean time of pairing": age(replica.mean_pairing_delay_seconds),
          "Redis": redis.version ?? "of unknown version",
          "can lose": redis.can_lose ?? "nothing that it has answered",
          "NATS": nats ? "connected" : "not connected",
        }),
      ].join("\n"),
    };
  },
};

export const findOne: OwnCommand = {
  usage: "matchmaking ticket TICKET_ID",
  words: 1,
  summary: "Show a ticket as it is stored, and whether its event waits to be published",
  options: {},
  help: `
Changes nothing: a ticket whose time is over is QUEUED until the worker ends it. The event is GONE
when it was published, or lost with the data of Redis; the receivers know it by its id: ops timeline.
Redis deletes a ticket \`matchmaking.result-ttl\` after its time to wait is over.
Exit code 1 if there is no such ticket.`,
  async run(service, { positionals: [ticket_id] }) {
    if (ticket_id === undefined) throw new UsageError("the TICKET_ID is required");
    const found = await service.ask(ticketRoute, { ticket_id });
    return {
      problem: found.ticket === null,
      json: found,
      text: found.ticket ? ticketText(found.ticket, found.event) : "There is no such ticket.",
    };
  },
};

function ticketText(ticket: NonNullable<TicketLook["ticket"]>, event: TicketLook["event"]): string {
  return list({
    ticket: ticket.ticket_id,
    user: ticket.user_id ?? "unknown",
    mode: ticket.mode,
    status: ticket.status ?? "unknown",
    joined: time(ticket.created_at),
    expires: time(ticket.expires_at),
    matched: ticket.matched_at ? time(ticket.matched_at) : undefined,
    match: ticket.match_id ?? undefined,
    peers: ticket.peer_user_ids ?? undefined,
    attributes: ticket.attributes ?? undefined,
    key: ticket.idempotency_key ?? "-",
    trace: ticket.trace_id || "-",
    event: event ? `${event.event_id} (${event.state})` : "none",
    "deleted at": time(ticket.deleted_at),
  });
}
