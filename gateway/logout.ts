import { z } from "@hono/zod-openapi";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { valid } from "@kenri/shared/operators/operations.ts";
import type { Handler } from "hono";
import type { AccountClient } from "./account_client.ts";
import { visitorOf } from "./session/admit.ts";
import type { Cookies } from "./session/cookies.ts";
import type { KnownAccounts } from "./session/known_accounts.ts";

// Ends the session that asks for it, or all sessions of its user, on every replica.

const requestSchema = z.object({
  all: z.enum(["true", "false"], "must be true or false").optional().openapi({
    description: "Whether all sessions of the user end",
  }),
});

export const logoutRoute: ScopedRoute = {
  method: "post",
  path: "/logout",
  scope: "session",
  tags: ["People"],
  summary: "Log out",
  description: "Does not end the session at the issuer. May be repeated while it fails.",
  request: { query: requestSchema },
  responses: {
    204: { description: "The session has ended; the answer clears its cookie" },
    400: errorAnswer("The query is invalid", { BAD_REQUEST: "all must be true or false" }),
  },
};

export interface LogoutParts {
  account: Pick<AccountClient, "endSession" | "endSessions">;
  known: KnownAccounts;
  cookies: Cookies;
}

// The session has ended when the account service says so. This replica knows it at once, the others by
// the event of it.
export function logout({ account, known, cookies }: LogoutParts): Handler {
  return async (context) => {
    const { all } = valid(requestSchema.safeParse(context.req.query()));
    const { session } = visitorOf(context);
    if (all === "true") {
      await account.endSessions(session.userId);
      known.endEarlier(session.userId, session.epoch + 1);
    } else {
      await account.endSession(session);
      known.end(session.sessionId, session.expiresAtMs);
    }
    return new Response(null, {
      status: 204,
      headers: { "Set-Cookie": cookies.clear(cookies.session) },
    });
  };
}
