import type { HonoRequest } from "hono";
import { pathPart } from "@kenri/shared/http/route.ts";
import type { Reply } from "@kenri/shared/redis/redis_link.ts";
import { userOf } from "./acting.ts";
import { apiError } from "./errors.ts";
import { commonKeys } from "./keys.ts";
import { type Found, foundIn, modeOfTicket } from "./ticket.ts";

// What the requests for one ticket have in common: only its owner may see it.

export const ticketForbidden = "the ticket belongs to another user";
export const ticketNotFound = "ticket not found";

export interface TicketCall {
  id: string;
  keys: string[];
  args: string[];
}

export function callOf(req: HonoRequest, modes: readonly string[]): TicketCall {
  const userId = userOf(req);
  const id = pathPart(req, "ticket_id");
  const mode = modeOfTicket(id, modes);
  if (mode === undefined) throw notFound();
  return { id, keys: commonKeys(mode), args: [id, userId] };
}

export function ticketIn(reply: Reply): Found {
  const [how] = reply as [string];
  if (how === "missing") throw notFound();
  if (how === "foreign") throw apiError("MATCHMAKING_TICKET_FORBIDDEN", ticketForbidden);
  return foundIn(reply);
}

const notFound = () => apiError("MATCHMAKING_TICKET_NOT_FOUND", ticketNotFound);
