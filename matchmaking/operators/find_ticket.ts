import { z } from "@hono/zod-openapi";
import { eventIdOf } from "@kenri/proto/matchmaking/event_id.ts";
import { textSchema } from "@kenri/shared/http/fields.ts";
import { lookRoute } from "@kenri/shared/operators/look_route.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import { entriesOf } from "@kenri/shared/outbox/stream/stored_events.ts";
import type { Handler } from "hono";
import { keysOf } from "../keys.ts";
import { modeOfTicket } from "../ticket.ts";
import type { Stored } from "./stored.ts";

// A ticket as it is stored. Reading it changes nothing: one whose time is over is QUEUED until the
// worker, or a request of its user, ends it.

const request = z.object({ ticket_id: textSchema() });

export type TicketQuery = z.input<typeof request>;

const answerSchema = z.object({
  ticket: z.object({
    ticket_id: z.string(),
    user_id: z.string().nullable(),
    mode: z.string(),
    status: z.string().nullable(),
    created_at: z.string().nullable(),
    expires_at: z.string().nullable(),
    matched_at: z.string().nullable(),
    match_id: z.string().nullable(),
    peer_user_ids: z.string().nullable().openapi({ description: "As JSON, as it is stored" }),
    attributes: z.string().nullable().openapi({
      description: "As JSON; a ticket that ended without a match has none",
    }),
    idempotency_key: z.string().nullable(),
    trace_id: z.string().nullable(),
    deleted_at: z.string().nullable().openapi({ description: "When Redis will delete it" }),
  }).nullable(),
  event: z.object({
    event_id: z.uuid(),
    state: z.enum(["WAITING", "DEAD", "GONE"]).openapi({
      description: "GONE: it was published, or it was lost with the data of Redis",
    }),
  }).nullable().openapi({ description: "The last event of the ticket" }),
}).openapi("StoredTicket");

export type TicketLook = z.infer<typeof answerSchema>;

export const ticketRoute = lookRoute({
  path: "/debug/matchmaking/ticket",
  summary: "A ticket as it is stored",
  description: "With its event, if it has one, and whether that waits to be published",
  query: request,
  answer: answerSchema,
  answers: "The ticket; none is no error",
  invalid: "The ticket_id is missing or invalid",
});

export function findTicket(stored: Stored): Handler {
  return async ({ req }) => {
    const { ticket_id } = valid(request.safeParse(req.query()));
    const mode = modeOfTicket(ticket_id, stored.modes);
    const ticket = mode === undefined ? null : await readTicket(stored, mode, ticket_id);
    const eventId = ticket && eventOfTicket(ticket);
    const event = mode === undefined || !eventId
      ? null
      : { event_id: eventId, state: await stateOf(stored, mode, ticket_id) };
    return Response.json({ ticket, event } satisfies TicketLook);
  };
}

type Ticket = NonNullable<TicketLook["ticket"]>;

const names = [
  ...["user_id", "status", "created_ms", "expires_ms", "matched_ms", "match_id", "peers"],
  ...["attributes", "idempotency_key", "trace_id"],
];

async function readTicket(
  { redis }: Stored,
  mode: string,
  ticket_id: string,
): Promise<Ticket | null> {
  const key = `${keysOf(mode).tickets}${ticket_id}`;
  const [values, deletedMs] = await Promise.all([
    redis.command(["HMGET", key, ...names]),
    redis.command(["PEXPIRETIME", key]),
  ]) as [(string | null)[], number];
  if (values.every((value) => value === null)) return null;
  const of = (name: string) => values[names.indexOf(name)] ?? null;
  return {
    ticket_id,
    user_id: of("user_id"),
    mode,
    status: of("status"),
    created_at: timeOf(of("created_ms")),
    expires_at: timeOf(of("expires_ms")),
    matched_at: timeOf(of("matched_ms")),
    match_id: of("match_id"),
    peer_user_ids: of("peers"),
    attributes: of("attributes"),
    idempotency_key: of("idempotency_key"),
    trace_id: of("trace_id"),
    deleted_at: deletedMs > 0 ? timeOf(`${deletedMs}`) : null,
  };
}

function timeOf(ms: string | null): string | null {
  const time = new Date(Number(ms ?? NaN));
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}

const typeOfEnd = new Map([
  ["MATCHED", "MatchFound"],
  ["EXPIRED", "TicketExpired"],
  ["INVALID", "TicketInvalid"],
]);

function eventOfTicket({ ticket_id, user_id, status, match_id }: Ticket): string | undefined {
  const event_type = typeOfEnd.get(status ?? "");
  return event_type && eventIdOf({ event_type, match_id, user_id: user_id ?? "", ticket_id });
}

async function stateOf(
  { redis }: Stored,
  mode: string,
  ticketId: string,
): Promise<"WAITING" | "DEAD" | "GONE"> {
  const { events, dead } = keysOf(mode);
  for (const [stream, state] of [[events, "WAITING"], [dead, "DEAD"]] as const) {
    for await (const { fields } of entriesOf(redis, stream)) {
      if (fields["ticket_id"] === ticketId) return state;
    }
  }
  return "GONE";
}
