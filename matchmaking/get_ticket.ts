import { z } from "@hono/zod-openapi";
import { slotOf } from "@kenri/shared/access/admit.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import type { RedisLink } from "@kenri/shared/redis/redis_link.ts";
import type { Handler } from "hono";
import { actingHeader } from "./acting.ts";
import { answering, unavailableAnswer } from "./answering.ts";
import type { Changes } from "./changes.ts";
import { badRequest, type ErrorCode } from "./errors.ts";
import type { Rings } from "./match_tickets.ts";
import { callOf, ticketForbidden, ticketIn, ticketNotFound } from "./on_ticket.ts";
import { scripts } from "./scripts/scripts.ts";
import { ticketExample, ticketSchema } from "./ticket.ts";

export interface GetParts {
  redis: RedisLink;
  changes: Changes;
  rings: Rings;
  modes: readonly string[];
}

export const onTicket: Pick<ScopedRoute, "path" | "scope" | "tags" | "responses"> = {
  path: "/v1/matchmaking/tickets/{ticket_id}",
  scope: "matchmaking:act-as",
  tags: ["Tickets"],
  responses: {
    200: {
      description: "How the ticket stands",
      content: { "application/json": { schema: ticketSchema, example: ticketExample } },
    },
    400: errorAnswer<ErrorCode>("A header or parameter is invalid", {
      MATCHMAKING_BAD_REQUEST: "X-User-Id is required",
    }),
    403: errorAnswer<ErrorCode>("It is the ticket of another user, or the scope is missing", {
      MATCHMAKING_TICKET_FORBIDDEN: ticketForbidden,
    }),
    404: errorAnswer<ErrorCode>("There is no such ticket, or it was long ago", {
      MATCHMAKING_TICKET_NOT_FOUND: ticketNotFound,
    }),
    503: unavailableAnswer,
  },
};

export const getRoute: ScopedRoute = {
  ...onTicket,
  method: "get",
  summary: "How a ticket stands",
  description: "With `wait`, it answers when the ticket no longer waits, or when the time is over.",
  request: {
    params: z.object({ ticket_id: z.string() }),
    query: z.object({
      wait: z.string().optional().openapi({ example: "25s", description: "From 0s to 60s" }),
    }),
    headers: z.object(actingHeader),
  },
};

// A message of a change may be lost with a connection, so a ticket is also read again after this time.
const readAgainMs = 2_000;

export function getTicket({ redis, changes, rings, modes }: GetParts): Handler {
  return answering(async (context) => {
    const { req } = context;
    const { id, keys, args } = callOf(req, modes);
    const waitMs = waitMsOf(req.query("wait"));
    const until = performance.now() + waitMs;
    if (waitMs > 0) slotOf(context)?.take("waiting");
    for (;;) {
      const change = changes.of(id); // before it is read, so that none is missed
      try {
        const { ticket, announced } = ticketIn(await redis.runScript(scripts.read, keys, args));
        if (announced) rings.announced();
        const leftMs = until - performance.now();
        if (ticket.status !== "QUEUED" || leftMs <= 0 || changes.closed || req.raw.signal.aborted) {
          return Response.json(ticket);
        }
        await change.wait(Math.min(leftMs, readAgainMs), req.raw.signal);
      } finally {
        change.end();
      }
    }
  });
}

const maxWaitSeconds = 60;

function waitMsOf(wait: string | undefined): number {
  if (wait === undefined) return 0;
  const seconds = Number(/^(\d{1,2})s$/.exec(wait)?.[1]);
  if (seconds <= maxWaitSeconds) return seconds * 1_000;
  throw badRequest(`wait must be from 0s to ${maxWaitSeconds}s`);
}
