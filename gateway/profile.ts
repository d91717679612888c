import { z } from "@hono/zod-openapi";
import { ApiError } from "@kenri/shared/http/errors.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import type { Handler } from "hono";
import {
  accountSchema,
  entitlementsSchema,
  failuresOf,
  refusalsOf,
  ticketSchema,
} from "./answers.ts";
import type { Dependencies, DependencyName } from "./dependencies.ts";
import { requireOwn, segmentOf } from "./pass_on.ts";
import { visitorOf } from "./session/admit.ts";

// What the services know of a user, in one answer. All of them are asked at the same time, under one
// deadline.

const deadlineMs = 1_000;
const withTicketMs = 10_000;

const missing = z.object({ unavailable: z.string() }).openapi("Unavailable", {
  description: "Instead of a part, with `partial=true`: the code of the error",
});

export const profileRoute: ScopedRoute = {
  method: "get",
  path: "/v1/users/{user_id}/profile",
  scope: "session",
  tags: ["People"],
  summary: "The account, the entitlements and a ticket of the user",
  description: "With `partial=true` the other parts are answered even if a service fails.",
  request: {
    params: z.object({ user_id: z.string() }),
    query: z.object({
      ticket_id: z.string().optional(),
      partial: z.enum(["true", "false"]).optional(),
    }),
  },
  responses: {
    200: {
      description: "`matchmaking` is null without `ticket_id`",
      content: {
        "application/json": {
          schema: z.object({
            account: z.union([accountSchema, missing]),
            entitlement: z.union([entitlementsSchema, missing]),
            matchmaking: z.union([ticketSchema, missing]).nullable(),
          }).openapi("Profile"),
        },
      },
    },
    ...refusalsOf("BAD_REQUEST", "PROFILE_FORBIDDEN", "MATCHMAKING_TICKET_NOT_FOUND"),
    ...failuresOf("ACCOUNT", "ENTITLEMENT", "MATCHMAKING"),
  },
};

export function profile(dependencies: Dependencies): Handler {
  return async (context) => {
    const { userId } = visitorOf(context).session;
    requireOwn(context, userId, "PROFILE_FORBIDDEN");
    const ticketId = context.req.query("ticket_id");
    const ticket = ticketId === undefined ? undefined : segmentOf("ticket_id", ticketId);
    const isPartial = readPartial(context.req.query("partial"));
    const deadline = AbortSignal.timeout(ticket === undefined ? deadlineMs : withTicketMs);
    const part = async <Part>(name: DependencyName, path: string, schema: z.ZodType<Part>) => {
      const headers = { "X-User-Id": userId };
      try {
        return await dependencies[name].json({ method: "GET", path, headers, deadline }, schema);
      } catch (error) {
        if (isPartial && error instanceof ApiError) return { unavailable: error.code };
        throw error;
      }
    };
    const [account, entitlement, matchmaking] = await Promise.all([
      part("account", `/v1/users/${userId}`, accountSchema),
      part("entitlement", `/v1/users/${userId}/entitlements`, entitlementsSchema),
      ticket === undefined
        ? null
        : part("matchmaking", `/v1/matchmaking/tickets/${ticket}`, ticketSchema),
    ]);
    return Response.json({ account, entitlement, matchmaking });
  };
}

function readPartial(partial = "false"): boolean {
  if (partial === "true" || partial === "false") return partial === "true";
  throw new ApiError("BAD_REQUEST", "partial must be true or false");
}
