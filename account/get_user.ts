import { z } from "@hono/zod-openapi";
import { ApiError } from "@kenri/shared/http/errors.ts";
import { errorAnswer } from "@kenri/shared/http/fields.ts";
import type { ScopedRoute } from "@kenri/shared/http/openapi.ts";
import { pathPart } from "@kenri/shared/http/route.ts";
import type { Database } from "@kenri/shared/postgres/postgres.ts";
import type { Handler } from "hono";
import { actingHeader, type Actor, actorOf, notAdmin, notOwner } from "./acting.ts";
import { userNotFound } from "./errors.ts";
import { etagOf, findUser, shown, userExample, userSchema } from "./user.ts";

export const userRoute: ScopedRoute = {
  method: "get",
  path: "/v1/users/{user_id}",
  scope: "accounts:read",
  tags: ["Accounts"],
  summary: "The account of a user",
  description: "With `X-User-Id`, only the user or an ADMIN may see it.",
  request: { params: z.object({ user_id: z.string() }), headers: z.object(actingHeader) },
  responses: {
    200: {
      description: "`ETag` is the version of the account",
      content: { "application/json": { schema: userSchema, example: userExample } },
    },
    400: errorAnswer("`X-User-Id` is invalid", { BAD_REQUEST: "X-User-Id must be a UUID" }),
    403: errorAnswer("`X-User-Id` is not the owner, or the scope is missing", {
      FORBIDDEN: notOwner,
    }),
    404: errorAnswer("There is no such user", { NOT_FOUND: userNotFound }),
  },
};

export function getUser(database: Database): Handler {
  return async (context) => {
    const userId = pathPart(context.req, "user_id");
    await requireOwner(database, actorOf(context), userId);
    const user = await findUser(database, userId);
    if (!user) throw new ApiError("NOT_FOUND", userNotFound);
    return Response.json(shown(user), { headers: { "ETag": etagOf(user) } });
  };
}

async function requireOwner(database: Database, actor: Actor, userId: string): Promise<void> {
  if (actor.name !== userId.toLowerCase()) await requireAdmin(database, actor, notOwner);
}

// A user whose account is not active has no rights.
export async function requireAdmin(
  database: Database,
  { name, isUser }: Actor,
  refusal = notAdmin,
): Promise<void> {
  if (!isUser) return;
  const user = await findUser(database, name);
  const isAdmin = user?.status === "ACTIVE" && user.roles.includes("ADMIN");
  if (!isAdmin) throw new ApiError("FORBIDDEN", refusal);
}
