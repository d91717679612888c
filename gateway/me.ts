import { z } from "@hono/zod-openapi";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import type { Handler } from "hono";
import { visitorOf } from "./session/admit.ts";
import type { CsrfTokens } from "./session/csrf.ts";

// Who is logged in.

const answerSchema = z.object({
  user_id: z.uuid(),
  account_status: z.literal("ACTIVE"),
  roles: z.array(z.string()),
  csrf_token: z.string().openapi({
    description: "Unsafe requests of this session need it as the header X-CSRF-Token",
  }),
  session: z.object({
    expires_at: z.iso.datetime().openapi({ description: "When the session ends at the latest" }),
  }),
}).openapi("Me");

export const meRoute: ScopedRoute = {
  method: "get",
  path: "/v1/me",
  scope: "session",
  tags: ["People"],
  summary: "Who is logged in",
  responses: {
    200: {
      description: "The user of the session",
      content: { "application/json": { schema: answerSchema } },
    },
  },
};

export function me(csrf: CsrfTokens): Handler {
  return (context) => {
    const { session, state } = visitorOf(context);
    return Response.json({
      user_id: session.userId,
      account_status: state.status,
      roles: state.roles,
      csrf_token: csrf.of(session),
      session: { expires_at: new Date(session.expiresAtMs).toISOString() },
    });
  };
}
