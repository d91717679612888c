import { z } from "@hono/zod-openapi";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import type { MakeChange } from "@kenri/shared/redis/confirmed.ts";
import type { Handler } from "hono";
import { actingHeader } from "./acting.ts";
import { answering } from "./answering.ts";
import { onTicket } from "./get_ticket.ts";
import type { Rings } from "./match_tickets.ts";
import { callOf, ticketIn } from "./on_ticket.ts";
import { scripts } from "./scripts/scripts.ts";

export interface CancelParts {
  change: MakeChange;
  rings: Rings;
  modes: readonly string[];
}

export const cancelRoute: ScopedRoute = {
  ...onTicket,
  method: "delete",
  summary: "No longer wait for a match",
  description: "A ticket that waits no more stays as it is. The answer says how it stands.",
  request: {
    params: z.object({ ticket_id: z.string() }),
    headers: z.object(actingHeader),
  },
};

export function cancel({ change, rings, modes }: CancelParts): Handler {
  return answering(async ({ req }) => {
    const { keys, args } = callOf(req, modes);
    const { ticket, announced } = ticketIn(await change({ script: scripts.cancel, keys, args }));
    if (announced) rings.announced();
    return Response.json(ticket);
  });
}
